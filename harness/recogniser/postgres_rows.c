#include <stdlib.h>
#include <string.h>

#include "harness/recogniser/postgres_talk.h"

/* Which rows a statement is about, by the names that they have for everybody. */

static const char *const USUAL_KEYS[TABLE_KEYS] = {"id"};

const char *const *postgres_table_keys(const struct postgres_talk *talk, const char *table) {
    const struct recogniser_settings *settings = &talk->session->recogniser->settings;
    const struct table_facts *facts = settings->table ? settings->table(settings->context, 0, table) : NULL;
    return facts && facts->keys[0] ? facts->keys : USUAL_KEYS;
}

/* --- names --- */

void row_name_begin(const struct postgres_talk *talk, struct row_name *name, const char *table) {
    name->text = short_text_in(name->bytes, sizeof name->bytes);
    short_text_say(&name->text, talk->database);
    short_text_say(&name->text, " ");
    short_text_say(&name->text, table);
}

void row_name_key(struct row_name *name, const char *column) {
    short_text_say(&name->text, " ");
    short_text_say(&name->text, column);
    short_text_say(&name->text, "=");
}

void row_name_copy(const struct row_name *name, char object[static OBJECT_ROOM]) {
    struct short_text text = short_text_in(object, OBJECT_ROOM);
    short_text_add(&text, (struct span){name->bytes, name->text.length});
    object_end(&text, text_hash((struct span){name->bytes, name->text.length}));
}

void postgres_table_object(const struct postgres_talk *talk, const char *table, char object[static OBJECT_ROOM]) {
    struct row_name name;
    row_name_begin(talk, &name, table);
    row_name_copy(&name, object);
}

static void named_rows_add(struct named_rows *rows, const struct row_name *name) {
    char object[OBJECT_ROOM];
    row_name_copy(name, object);
    for (int each = 0; each < rows->count; each++)
        if (strcmp(rows->names[each], object) == 0) return;
    rows->more = rows->count == ROWS_NAMED;
    if (rows->more) return;
    rows->names[rows->count] = strdup(object);
    if (!rows->names[rows->count++]) abort();
}

void named_rows_clear(struct named_rows *rows) {
    for (int each = 0; each < rows->count; each++) free(rows->names[each]);
    rows->count = 0;
    rows->more = false;
}

/* --- by conditions --- */

static struct sql_parameters parameters_of(const struct bound_statement *bound) {
    return (struct sql_parameters){bound->parameters, bound->parameter_count};
}

static const struct sql_equality *equality_of(const struct sql_statement *sql, int table, const char *column) {
    for (int each = 0; each < sql->equality_count; each++)
        if (sql->equalities[each].table == table && strcmp(sql->equalities[each].column, column) == 0)
            return &sql->equalities[each];
    return NULL;
}

/* {1,2,3}, whose elements have no quotes. */
static bool array_rows_named(const struct row_name *begun, struct span array, struct named_rows *rows) {
    if (array.length < 2 || array.bytes[0] != '{' || array.bytes[array.length - 1] != '}') return false;
    if (memchr(array.bytes, '"', array.length)) return false;
    for (size_t at = 1, end; at < array.length - 1; at = end + 1) {
        const char *comma = memchr(array.bytes + at, ',', array.length - at);
        end = comma ? (size_t)(comma - array.bytes) : array.length - 1;
        struct row_name name = *begun;
        name.text.bytes = name.bytes;
        short_text_add(&name.text, (struct span){array.bytes + at, end - at});
        named_rows_add(rows, &name);
    }
    return true;
}

static bool condition_rows_named(const struct postgres_talk *talk, const struct bound_statement *bound, int table,
                                 struct named_rows *rows) {
    const struct sql_statement *sql = bound->prepared->sql;
    const char *const *keys = postgres_table_keys(talk, sql->tables[table].name);
    struct row_name name;
    row_name_begin(talk, &name, sql->tables[table].name);
    for (int key = 0; key < TABLE_KEYS && keys[key]; key++) {
        const struct sql_equality *equality = equality_of(sql, table, keys[key]);
        bool is_last = key == TABLE_KEYS - 1 || !keys[key + 1];
        if (!equality || ((equality->count > 1 || equality->is_array) && !is_last)) return false;
        row_name_key(&name, keys[key]);
        for (int each = 0; each < equality->count; each++) {
            struct row_name one = name;
            one.text.bytes = one.bytes;
            size_t before = one.text.length;
            if (!sql_value_add(&one.text, sql, sql->values[equality->first + each], parameters_of(bound))) return false;
            if (one.text.cut) return false;
            struct span value = {one.bytes + before, one.text.length - before};
            if (equality->is_array) return array_rows_named(&name, value, rows);
            if (is_last) named_rows_add(rows, &one);
            else name = one;
            name.text.bytes = name.bytes;
        }
    }
    return true;
}

/* The place of a column among those that are inserted; -1: it is not there. */
static int inserted_place(const struct sql_statement *sql, const char *column) {
    struct sql_value named;
    for (int place = 0; sql_listed_value(sql, sql->insert_columns, place, &named); place++) {
        char name[SQL_NAME];
        struct short_text text = short_text_in(name, sizeof name);
        sql_name_add(&text, &sql->tokens.list[named.from]);
        if (strcmp(name, column) == 0) return place;
    }
    return -1;
}

static bool inserted_rows_named(const struct postgres_talk *talk, const struct bound_statement *bound, int table,
                                struct named_rows *rows) {
    const struct sql_statement *sql = bound->prepared->sql;
    const char *const *keys = postgres_table_keys(talk, sql->tables[table].name);
    int places[TABLE_KEYS] = {0};
    if (sql->insert_columns < 0 || sql->more_rows) return false;
    for (int key = 0; key < TABLE_KEYS && keys[key]; key++)
        if ((places[key] = inserted_place(sql, keys[key])) < 0) return false;
    for (int row = 0; row < sql->insert_row_count; row++) {
        struct row_name name;
        row_name_begin(talk, &name, sql->tables[table].name);
        for (int key = 0; key < TABLE_KEYS && keys[key]; key++) {
            struct sql_value value;
            row_name_key(&name, keys[key]);
            if (!sql_listed_value(sql, sql->insert_rows[row], places[key], &value)) return false;
            if (!sql_value_add(&name.text, sql, value, parameters_of(bound)) || name.text.cut) return false;
        }
        named_rows_add(rows, &name);
    }
    return sql->insert_row_count > 0;
}

bool postgres_rows_named(const struct postgres_talk *talk, const struct bound_statement *bound, int table,
                         struct named_rows *rows) {
    const struct sql_statement *sql = bound->prepared->sql;
    bool inserts = sql->verb == DOES_INSERT && table == sql->main;
    bool named =
        inserts ? inserted_rows_named(talk, bound, table, rows) : condition_rows_named(talk, bound, table, rows);
    if (named && !rows->more) return true;
    named_rows_clear(rows);
    return false;
}

/* --- by answers --- */

void row_shape_begin(struct row_shape *shape) {
    shape->is_known = true;
    for (int table = 0; table < SQL_TABLES; table++)
        for (int key = 0; key < TABLE_KEYS; key++) shape->keys[table][key] = (struct answer_column){.index = -1};
}

void row_shape_column(const struct postgres_talk *talk, struct row_shape *shape, const struct sql_statement *sql,
                      int index, uint32_t table, const char *name, uint32_t type) {
    const struct recogniser_settings *settings = &talk->session->recogniser->settings;
    const struct table_facts *facts = table && settings->table ? settings->table(settings->context, table, "") : NULL;
    if (!sql || table == 0) return; /* an expression */
    for (int each = 0; each < sql->table_count; each++) {
        bool is_its = facts ? strcmp(facts->name, sql->tables[each].name) == 0 : sql->table_count == 1;
        const char *const *keys = is_its ? postgres_table_keys(talk, sql->tables[each].name) : NULL;
        for (int key = 0; keys && key < TABLE_KEYS && keys[key]; key++) {
            struct answer_column *column = &shape->keys[each][key];
            if (strcmp(keys[key], name) != 0 || column->index >= 0) continue;
            *column = (struct answer_column){index, type};
            return;
        }
    }
}

void postgres_row_note(struct postgres_talk *talk, const struct bound_statement *bound, const struct row_shape *shape,
                       int table, const struct span *columns, int count) {
    const char *const *keys = postgres_table_keys(talk, bound->prepared->sql->tables[table].name);
    struct row_name name;
    if (talk->rows[table].more) return;
    row_name_begin(talk, &name, bound->prepared->sql->tables[table].name);
    for (int key = 0; key < TABLE_KEYS && keys[key]; key++) {
        struct answer_column column = shape->keys[table][key];
        if (column.index < 0 || column.index >= count || !columns[column.index].bytes) return;
        int formats = bound->format_count;
        int format = formats == 1 ? bound->formats[0] : column.index < formats ? bound->formats[column.index] : 0;
        row_name_key(&name, keys[key]);
        postgres_value_add(&name.text, columns[column.index], column.type, format == 1);
    }
    if (!name.text.cut) named_rows_add(&talk->rows[table], &name);
}
