#include <string.h>
#include <strings.h>

#include "harness/recogniser/sql/sql_reader.h"

/* The tables and conditions of SELECT, INSERT, UPDATE and DELETE. */

static const char *const CLAUSES[] = {"where",  "group", "having", "window",    "order", "limit",
                                      "offset", "fetch", "for",    "returning", NULL};
static const char *const SETS[] = {"union", "intersect", "except", NULL};
static const char *const JOINS[] = {"join",  "left",  "right",   "full",    "inner",
                                    "outer", "cross", "natural", "lateral", NULL};
/* Words behind a table that are not its alias. */
static const char *const NO_ALIAS[] = {
    "where",      "set",       "on",     "using",     "join",   "left",        "right",  "full",   "inner",
    "cross",      "natural",   "group",  "order",     "having", "limit",       "offset", "fetch",  "for",
    "union",      "intersect", "except", "returning", "window", "tablesample", "values", "select", "default",
    "overriding", "when",      "do",     "with",      "from",   "to",          "in",     NULL};

/* --- tables --- */

int sql_table_add(struct sql_statement *statement, int *at, int level) {
    struct sql_table table = {.level = level};
    if (sql_word_at(statement, *at, "only")) ++*at;
    *at = sql_table_name_read(statement, *at, table.name);
    if (sql_mark_at(statement, *at, "*")) ++*at;
    if (sql_word_at(statement, *at, "as")) ++*at;
    bool has_alias = sql_name_at(statement, *at) && !sql_any_word_at(statement, *at, NO_ALIAS);
    if (has_alias) sql_name_copy(statement, (*at)++, table.alias);
    if (!*table.name) {
        statement->not_read = "the name of its table was not found";
        return -1;
    }
    if (statement->table_count == SQL_TABLES) {
        statement->not_read = "it names more tables than are looked at";
        return -1;
    }
    statement->tables[statement->table_count] = table;
    return statement->table_count++;
}

/* A name of WITH is no table. */
static bool is_with_name(const struct sql_statement *statement, const char *name) {
    char with[SQL_NAME];
    for (int each = 0; each < statement->with_count; each++) {
        sql_name_copy(statement, statement->with_names[each], with);
        if (strcmp(with, name) == 0) return true;
    }
    return false;
}

/* FROM and USING: tables, joins, queries and functions. Queries in brackets are read by their own. */
static void from_read(struct sql_statement *statement, int from, int to, int level, int depth) {
    for (int at = from; at < to && depth < SQL_DEEPEST;) {
        if (sql_word_at(statement, at, "on")) {
            for (at++; at < to && !sql_any_word_at(statement, at, JOINS) && !sql_mark_at(statement, at, ",");)
                at = sql_behind(statement, at);
        } else if (sql_word_at(statement, at, "using") || sql_word_at(statement, at, "tablesample")) {
            at += sql_word_at(statement, at, "using") ? 1 : 2;
            at = sql_behind(statement, at);
        } else if (sql_mark_at(statement, at, "(")) {
            int end = sql_behind(statement, at);
            bool is_query = sql_word_at(statement, at + 1, "select") || sql_word_at(statement, at + 1, "with") ||
                            sql_word_at(statement, at + 1, "values");
            if (!is_query) from_read(statement, at + 1, end - 1, level, depth + 1);
            at = end;
            if (sql_word_at(statement, at, "as")) at++;
            if (at < to && sql_name_at(statement, at) && !sql_any_word_at(statement, at, NO_ALIAS)) at++;
        } else if (sql_name_at(statement, at) && !sql_any_word_at(statement, at, JOINS)) {
            char name[SQL_NAME];
            int behind = sql_table_name_read(statement, at, name);
            bool is_function = sql_mark_at(statement, behind, "(");
            bool is_with = !is_function && is_with_name(statement, name);
            if (is_function || is_with) at = is_with ? behind : sql_behind(statement, behind);
            else if (sql_table_add(statement, &at, level) < 0) return;
            is_function |= is_with;
            if (is_function && sql_word_at(statement, at, "as")) at++;
            if (is_function && at < to && sql_name_at(statement, at) && !sql_any_word_at(statement, at, NO_ALIAS)) at++;
        } else {
            at = sql_behind(statement, at);
        }
    }
}

/* --- conditions --- */

/* The table that a column is of: by its qualifier; without one, if there is only one. -1: not known. */
static int table_of_column(const struct sql_statement *statement, const char *qualifier, int first) {
    if (!*qualifier) return statement->table_count == first + 1 ? first : -1;
    for (int each = first; each < statement->table_count; each++) {
        const struct sql_table *table = &statement->tables[each];
        const char *dot = strrchr(table->name, '.');
        const char *called = *table->alias ? table->alias : dot ? dot + 1 : table->name;
        if (strcmp(called, qualifier) == 0 || strcmp(table->name, qualifier) == 0) return each;
    }
    return -1;
}

/* Reads a column, perhaps qualified, at `at`; returns what follows, `at` itself without a column. */
static int column_read(const struct sql_statement *statement, int at, int to, char qualifier[static SQL_NAME],
                       char column[static SQL_NAME]) {
    qualifier[0] = column[0] = '\0';
    if (!sql_name_at(statement, at) || sql_word_at(statement, at, "not") || sql_word_at(statement, at, "exists"))
        return at;
    while (at < to && sql_name_at(statement, at)) {
        sql_name_copy(statement, at++, column);
        if (!sql_mark_at(statement, at, ".")) return at;
        memcpy(qualifier, column, SQL_NAME);
        at++;
    }
    return at;
}

static bool value_note(struct sql_statement *statement, struct sql_equality *equality, struct sql_value value) {
    if (statement->value_count == SQL_VALUES || !sql_value_is_constant(statement, value)) return false;
    statement->values[statement->value_count++] = value;
    equality->count++;
    return true;
}

static void equality_note(struct sql_statement *statement, struct sql_equality *equality, int from, int to,
                          bool is_list) {
    int before = statement->value_count;
    bool all = statement->equality_count < SQL_EQUALITIES;
    equality->first = before;
    for (int at = from; at < to && all;) {
        int end = is_list ? sql_mark_find(statement, at, to, ",") : to;
        all = value_note(statement, equality, (struct sql_value){at, end});
        at = end + 1;
    }
    if (all && equality->count > 0) statement->equalities[statement->equality_count++] = *equality;
    else statement->value_count = before;
}

/* One of several conditions that all have to be true. */
static void conjunct_read(struct sql_statement *statement, int from, int to, int first) {
    struct sql_equality equality = {0};
    char qualifier[SQL_NAME];
    int at = column_read(statement, from, to, qualifier, equality.column);
    equality.table = table_of_column(statement, qualifier, first);
    while (at > from && at + 1 < to && sql_mark_at(statement, at, "::")) at += 2;
    if (at > from && sql_mark_at(statement, at, "=") && sql_word_at(statement, at + 1, "any") &&
        sql_behind(statement, at + 2) == to) {
        equality.is_array = true;
        if (equality.table >= 0) equality_note(statement, &equality, at + 3, to - 1, false);
    } else if (at > from && sql_mark_at(statement, at, "=")) {
        if (equality.table >= 0) equality_note(statement, &equality, at + 1, to, false);
    } else if (at > from && sql_word_at(statement, at, "in") && sql_behind(statement, at + 1) == to) {
        if (equality.table >= 0) equality_note(statement, &equality, at + 2, to - 1, true);
    }
    /* value = column */
    int equals = sql_mark_find(statement, from, to, "=");
    if (equals < to && column_read(statement, equals + 1, to, qualifier, equality.column) == to) {
        equality = (struct sql_equality){.table = table_of_column(statement, qualifier, first)};
        column_read(statement, equals + 1, to, qualifier, equality.column);
        if (equality.table >= 0) equality_note(statement, &equality, from, equals, false);
    }
}

void sql_conditions_read(struct sql_statement *statement, int from, int to, int first, int depth) {
    if (depth >= SQL_DEEPEST || sql_word_find(statement, from, to, "or") < to) return;
    for (int at = from, end; at < to; at = end + 1) {
        end = sql_word_find(statement, at, to, "and");
        int between = sql_word_find(statement, at, end, "between");
        if (between < end) end = sql_word_find(statement, end + 1, to, "and");
        if (end > to) end = to;
        if (sql_mark_at(statement, at, "(") && sql_behind(statement, at) == end)
            sql_conditions_read(statement, at + 1, end - 1, first, depth + 1);
        else conjunct_read(statement, at, end, first);
    }
}

/* Whether a condition is about a column that the statement sets: it holds for the row as it is now. */
static bool conditions_compare(const struct sql_statement *statement, int from, int to) {
    for (int at = from; at < to; at++) {
        char name[SQL_NAME];
        if (!sql_name_at(statement, at) || sql_mark_at(statement, at + 1, "(")) continue;
        sql_name_copy(statement, at, name);
        for (int each = 0; each < statement->assignment_count; each++)
            if (strcmp(statement->assignments[each].column, name) == 0) return true;
    }
    return false;
}

static bool is_end_of_lease(const char *column) {
    return strcasestr(column, "until") || strcasestr(column, "expir") || strcasestr(column, "lease");
}

/* Comparisons of the end of a lease, at whatever depth. */
static void expiry_read(struct sql_statement *statement, int from, int to) {
    for (int at = from + 1; at + 1 < to; at++) {
        bool below = sql_mark_at(statement, at, "<") || sql_mark_at(statement, at, "<=");
        bool above = sql_mark_at(statement, at, ">") || sql_mark_at(statement, at, ">=");
        if (!below && !above) continue;
        char left[SQL_NAME] = "", right[SQL_NAME] = "";
        if (sql_name_at(statement, at - 1)) sql_name_copy(statement, at - 1, left);
        int last = at + 1; /* of a qualified name */
        while (sql_mark_at(statement, last + 1, ".")) last += 2;
        if (sql_name_at(statement, last)) sql_name_copy(statement, last, right);
        if (is_end_of_lease(left))
            *(below ? &statement->expiry_is_over : &statement->expiry_is_ahead) = (struct sql_value){at + 1, to};
        else if (is_end_of_lease(right))
            *(above ? &statement->expiry_is_over : &statement->expiry_is_ahead) = (struct sql_value){from, at};
    }
}

/* --- clauses --- */

/* FOR UPDATE, and so on, in [from, to). */
static void row_locks_read(struct sql_statement *statement, int from, int to, int first) {
    for (int at = sql_word_find(statement, from, to, "for"); at < to; at = sql_word_find(statement, at, to, "for")) {
        int end = sql_word_find(statement, ++at, to, "for");
        bool exclusive = sql_word_find(statement, at, end, "update") < end;
        if (!exclusive && sql_word_find(statement, at, end, "share") == end) continue;
        int of = sql_word_find(statement, at, end, "of");
        for (int each = first; each < statement->table_count; each++) {
            bool is_meant = of == end;
            for (int name = of + 1; name < end && !is_meant && sql_name_at(statement, name); name += 2) {
                char called[SQL_NAME];
                sql_name_copy(statement, name, called);
                is_meant = table_of_column(statement, called, first) == each;
            }
            if (!is_meant) continue;
            statement->tables[each].is_locked = true;
            statement->tables[each].is_shared = !exclusive;
        }
        statement->nowait |= sql_word_find(statement, at, end, "nowait") < end;
        statement->skips_locked |= sql_word_find(statement, at, end, "skip") < end;
    }
}

/* FROM, but not that of IS DISTINCT FROM. */
static int from_find(const struct sql_statement *statement, int from, int to) {
    int at = sql_word_find(statement, from, to, "from");
    while (at < to && at > from && sql_word_at(statement, at - 1, "distinct") && at > from + 1)
        at = sql_word_find(statement, at + 1, to, "from");
    return at;
}

static void select_read(struct sql_statement *statement, int from, int to, int depth) {
    int first = statement->table_count;
    int from_at = from_find(statement, from, to);
    int list_end = sql_words_find(statement, from, from_at, CLAUSES);
    if (depth == 0 && statement->verb == DOES_NOTHING) {
        statement->verb = DOES_SELECT;
        statement->select_from = from + 1;
        statement->select_to = list_end;
    }
    int clauses = sql_words_find(statement, from_at < to ? from_at + 1 : list_end, to, CLAUSES);
    if (from_at < to) from_read(statement, from_at + 1, clauses, depth, 0);
    if (depth == 0 && statement->main < 0 && statement->table_count > first) statement->main = first;
    int where = sql_word_find(statement, clauses, to, "where");
    if (where < to) {
        int end = sql_words_find(statement, where + 1, to, CLAUSES);
        sql_conditions_read(statement, where + 1, end, first, 0);
    }
    row_locks_read(statement, clauses, to, first);
}

/* Queries in brackets within [from, to). */
static void inner_queries_read(struct sql_statement *statement, int from, int to, int depth) {
    for (int at = from; at < to; at++) {
        if (!sql_mark_at(statement, at, "(") || sql_token_at(statement, at)->match < 0) continue;
        if (!sql_word_at(statement, at + 1, "select") && !sql_word_at(statement, at + 1, "with")) continue;
        int end = sql_token_at(statement, at)->match;
        sql_query_read(statement, at + 1, end, depth + 1);
        at = end;
    }
}

/* SET column = value, ... in [from, to). */
static void assignments_read(struct sql_statement *statement, int from, int to) {
    for (int at = from, end; at < to; at = end + 1) {
        end = sql_mark_find(statement, at, to, ",");
        int equals = sql_mark_find(statement, at, end, "=");
        struct sql_value value = {equals + 1, end};
        if (equals >= end) continue;
        bool is_given = sql_word_at(statement, value.from, "default") || sql_word_at(statement, value.from, "excluded");
        statement->relative |= !is_given && !sql_value_is_constant(statement, value);
        if (!sql_name_at(statement, equals - 1) || statement->assignment_count == SQL_ASSIGNMENTS) continue;
        struct sql_assignment *assignment = &statement->assignments[statement->assignment_count++];
        sql_name_copy(statement, equals - 1, assignment->column);
        assignment->value = value;
    }
}

static void written_note(struct sql_statement *statement, int table, int depth, enum sql_verb verb) {
    if (table >= 0) statement->tables[table].is_written = true;
    if (depth > 0) return;
    statement->verb = verb;
    statement->main = table;
}

static void update_read(struct sql_statement *statement, int from, int to, int depth) {
    int at = from + 1, first = statement->table_count;
    written_note(statement, sql_table_add(statement, &at, depth), depth, DOES_UPDATE);
    static const char *const BEHIND[] = {"from", "where", "returning", NULL};
    int set = sql_word_find(statement, at, to, "set");
    int set_end = sql_words_find(statement, set < to ? set + 1 : to, to, BEHIND);
    if (set < to) assignments_read(statement, set + 1, set_end);
    int where = sql_word_find(statement, set_end, to, "where");
    int returning = sql_word_find(statement, set_end, to, "returning");
    if (sql_word_at(statement, set_end, "from"))
        from_read(statement, set_end + 1, where < returning ? where : returning, depth, 0);
    if (where >= to) return;
    sql_conditions_read(statement, where + 1, returning, first, 0);
    expiry_read(statement, where + 1, returning);
    if (depth == 0) statement->conditional = conditions_compare(statement, where + 1, returning);
}

static void delete_read(struct sql_statement *statement, int from, int to, int depth) {
    int at = from + 2, first = statement->table_count;
    written_note(statement, sql_table_add(statement, &at, depth), depth, DOES_DELETE);
    int where = sql_word_find(statement, at, to, "where");
    int returning = sql_word_find(statement, at, to, "returning");
    if (sql_word_at(statement, at, "using"))
        from_read(statement, at + 1, where < returning ? where : returning, depth, 0);
    if (where >= to) return;
    sql_conditions_read(statement, where + 1, returning, first, 0);
    expiry_read(statement, where + 1, returning);
}

static void insert_rows_note(struct sql_statement *statement, int from, int to) {
    for (int at = from; at < to && sql_mark_at(statement, at, "("); at = sql_behind(statement, at) + 1) {
        statement->more_rows = statement->insert_row_count == SQL_INSERTED_ROWS;
        if (statement->more_rows) return;
        statement->insert_rows[statement->insert_row_count++] = at;
    }
}

static void insert_read(struct sql_statement *statement, int from, int to, int depth) {
    int at = from + 2;
    written_note(statement, sql_table_add(statement, &at, depth), depth, DOES_INSERT);
    if (depth == 0 && sql_mark_at(statement, at, "(") && !sql_word_at(statement, at + 1, "select"))
        statement->insert_columns = at;
    static const char *const SOURCES[] = {"values", "select", "with", "default", NULL};
    int source = sql_words_find(statement, at, to, SOURCES);
    int conflict = sql_word_find(statement, source, to, "on");
    int returning = sql_word_find(statement, source, to, "returning");
    int end = conflict < returning ? conflict : returning;
    if (depth == 0 && sql_word_at(statement, source, "values")) insert_rows_note(statement, source + 1, end);
    else if (depth == 0) statement->more_rows = true;
    bool is_query = sql_word_at(statement, source, "select") || sql_word_at(statement, source, "with");
    if (is_query) sql_query_read(statement, source, end, depth + 1);
    inner_queries_read(statement, is_query ? end : source, to, depth);
    if (depth > 0 || conflict >= to) return;
    statement->on_conflict = true;
    int set = sql_word_find(statement, conflict, returning, "set");
    int where = sql_word_find(statement, set, returning, "where");
    if (set < returning) assignments_read(statement, set + 1, where);
    statement->conditional = where < returning;
    if (where < returning) expiry_read(statement, where, returning);
}

static int with_read(struct sql_statement *statement, int from, int to, int depth) {
    int at = from + 1;
    if (sql_word_at(statement, at, "recursive")) at++;
    while (at < to && sql_name_at(statement, at)) {
        if (statement->with_count < SQL_WITH_NAMES) statement->with_names[statement->with_count++] = at;
        else statement->not_read = "it has more parts of WITH than are looked at";
        at++;
        if (sql_mark_at(statement, at, "(")) at = sql_behind(statement, at);
        while (sql_word_at(statement, at, "as") || sql_word_at(statement, at, "not") ||
               sql_word_at(statement, at, "materialized"))
            at++;
        int end = sql_behind(statement, at);
        if (sql_mark_at(statement, at, "(")) sql_query_read(statement, at + 1, end - 1, depth + 1);
        at = end;
        if (!sql_mark_at(statement, at, ",")) break;
        at++;
    }
    return at < to ? at : to;
}

void sql_query_read(struct sql_statement *statement, int from, int to, int depth) {
    if (depth >= SQL_DEEPEST) {
        statement->not_read = "its queries are nested too deeply";
        return;
    }
    while (sql_mark_at(statement, from, "(") && sql_behind(statement, from) == to) {
        from++;
        to--;
    }
    if (sql_word_at(statement, from, "with")) from = with_read(statement, from, to, depth);
    if (sql_word_at(statement, from, "update")) {
        update_read(statement, from, to, depth);
    } else if (sql_word_at(statement, from, "delete")) {
        delete_read(statement, from, to, depth);
    } else if (sql_word_at(statement, from, "insert")) {
        insert_read(statement, from, to, depth);
        return;
    } else {
        for (int at = from, end; at < to; at = end + 1) {
            end = sql_words_find(statement, at, to, SETS);
            select_read(statement, at, end, depth);
        }
    }
    inner_queries_read(statement, from, to, depth);
}
