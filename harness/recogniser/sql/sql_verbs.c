#include <stdlib.h>
#include <string.h>

#include "harness/recogniser/sql/sql_reader.h"

/* --- finding tokens --- */

bool sql_any_word_at(const struct sql_statement *statement, int at, const char *const *words) {
    for (; *words; words++)
        if (sql_word_at(statement, at, *words)) return true;
    return false;
}

int sql_words_find(const struct sql_statement *statement, int from, int to, const char *const *words) {
    for (int at = from; at < to; at = sql_behind(statement, at))
        if (sql_any_word_at(statement, at, words)) return at;
    return to;
}

int sql_word_find(const struct sql_statement *statement, int from, int to, const char *word) {
    const char *const words[] = {word, NULL};
    return sql_words_find(statement, from, to, words);
}

int sql_mark_find(const struct sql_statement *statement, int from, int to, const char *mark) {
    for (int at = from; at < to; at = sql_behind(statement, at))
        if (sql_mark_at(statement, at, mark)) return at;
    return to;
}

void sql_name_copy(const struct sql_statement *statement, int at, char name[static SQL_NAME]) {
    struct short_text text = short_text_in(name, SQL_NAME);
    sql_name_add(&text, sql_token_at(statement, at));
}

int sql_table_name_read(const struct sql_statement *statement, int at, char name[static SQL_NAME]) {
    struct short_text text = short_text_in(name, SQL_NAME);
    while (sql_name_at(statement, at)) {
        if (strcmp(name, "public.") == 0) text = short_text_in(name, SQL_NAME);
        sql_name_add(&text, sql_token_at(statement, at++));
        if (!sql_mark_at(statement, at, ".")) break;
        short_text_say(&text, ".");
        at++;
    }
    return at;
}

/* --- verbs --- */

static enum wire_isolation isolation_in(const struct sql_statement *statement) {
    int at = 0, count = statement->tokens.count;
    while (at < count && !(sql_word_at(statement, at, "isolation") && sql_word_at(statement, at + 1, "level"))) at++;
    at += 2;
    if (sql_word_at(statement, at, "serializable")) return ISOLATION_SERIALIZABLE;
    if (sql_word_at(statement, at, "repeatable")) return ISOLATION_REPEATABLE_READ;
    if (!sql_word_at(statement, at, "read")) return ISOLATION_NOT_KNOWN;
    return sql_word_at(statement, at + 1, "uncommitted") ? ISOLATION_READ_UNCOMMITTED : ISOLATION_READ_COMMITTED;
}

enum wire_isolation sql_isolation_called(const char *name) {
    static const struct {
        const char *name;
        enum wire_isolation isolation;
    } NAMES[] = {{"serializable", ISOLATION_SERIALIZABLE},
                 {"repeatable read", ISOLATION_REPEATABLE_READ},
                 {"read committed", ISOLATION_READ_COMMITTED},
                 {"read uncommitted", ISOLATION_READ_UNCOMMITTED}};
    for (size_t each = 0; each < sizeof NAMES / sizeof NAMES[0]; each++)
        if (strcasecmp(name, NAMES[each].name) == 0) return NAMES[each].isolation;
    return ISOLATION_NOT_KNOWN;
}

/* SET transaction_isolation = 'repeatable read' */
static enum wire_isolation isolation_named(const struct sql_statement *statement, int at) {
    char said[SQL_NAME];
    struct short_text text = short_text_in(said, sizeof said);
    if (sql_word_at(statement, at, "serializable")) return ISOLATION_SERIALIZABLE;
    sql_value_add(&text, statement, (struct sql_value){at, statement->tokens.count}, (struct sql_parameters){0});
    return sql_isolation_called(said);
}

static void begin_verb(struct sql_statement *statement) {
    statement->verb = DOES_BEGIN;
    statement->isolation = isolation_in(statement);
}

static void start_verb(struct sql_statement *statement) {
    if (sql_word_at(statement, 1, "transaction")) begin_verb(statement);
}

static bool is_of_prepared(const struct sql_statement *statement) {
    return sql_word_at(statement, 1, "prepared");
}

static void commit_verb(struct sql_statement *statement) {
    if (is_of_prepared(statement)) return;
    statement->verb = DOES_COMMIT;
    int and = sql_word_find(statement, 1, statement->tokens.count, "and");
    statement->chains = sql_word_at(statement, and+1, "chain");
}

static void savepoint_note(struct sql_statement *statement, int at, enum sql_verb verb) {
    if (sql_word_at(statement, at, "savepoint")) at++;
    statement->verb = verb;
    sql_name_copy(statement, at, statement->savepoint);
}

static void rollback_verb(struct sql_statement *statement) {
    int to = sql_word_find(statement, 1, statement->tokens.count, "to");
    commit_verb(statement);
    if (is_of_prepared(statement)) return;
    statement->verb = DOES_ROLLBACK;
    if (to < statement->tokens.count) savepoint_note(statement, to + 1, DOES_ROLLBACK_TO);
}

static void savepoint_verb(struct sql_statement *statement) {
    savepoint_note(statement, 0, DOES_SAVEPOINT);
}

static void release_verb(struct sql_statement *statement) {
    savepoint_note(statement, 1, DOES_RELEASE_SAVEPOINT);
}

static void prepare_verb(struct sql_statement *statement) {
    if (sql_word_at(statement, 1, "transaction")) statement->not_read = "a transaction in two phases";
}

static void set_verb(struct sql_statement *statement) {
    int at = 1;
    if (sql_word_at(statement, at, "session") && sql_word_at(statement, at + 1, "characteristics")) {
        statement->isolation = isolation_in(statement);
        statement->verb = DOES_SET_SESSION;
        return;
    }
    if (sql_word_at(statement, at, "session") || sql_word_at(statement, at, "local")) at++;
    if (sql_word_at(statement, at, "transaction")) {
        statement->isolation = isolation_in(statement);
        statement->verb = DOES_SET_TRANSACTION;
    } else if (sql_word_at(statement, at, "transaction_isolation")) {
        statement->isolation = isolation_named(statement, at + 2);
        statement->verb = DOES_SET_TRANSACTION;
    } else if (sql_word_at(statement, at, "default_transaction_isolation")) {
        statement->isolation = isolation_named(statement, at + 2);
        statement->verb = DOES_SET_SESSION;
    }
}

static void discard_verb(struct sql_statement *statement) {
    if (sql_word_at(statement, 1, "all")) statement->verb = DOES_DISCARD_ALL;
}

static void query_verb(struct sql_statement *statement) {
    sql_query_read(statement, 0, statement->tokens.count, 0);
}

/* TRUNCATE [TABLE] a, b; LOCK [TABLE] a, b IN ... MODE [NOWAIT]; MERGE INTO a */
static void tables_verb(struct sql_statement *statement, int at, enum sql_verb verb) {
    statement->verb = verb;
    if (sql_word_at(statement, at, "table")) at++;
    for (bool more = true; more; at++) {
        if (sql_table_add(statement, &at, 0) < 0) return;
        struct sql_table *table = &statement->tables[statement->table_count - 1];
        table->is_written = verb != DOES_LOCK_TABLE;
        table->is_locked = verb == DOES_LOCK_TABLE;
        more = sql_mark_at(statement, at, ",");
    }
}

static void truncate_verb(struct sql_statement *statement) {
    tables_verb(statement, 1, DOES_TRUNCATE);
}

static void merge_verb(struct sql_statement *statement) {
    tables_verb(statement, 2, DOES_TRUNCATE);
    statement->not_read = "of MERGE only the table is seen that it writes to";
}

static void lock_verb(struct sql_statement *statement) {
    tables_verb(statement, 1, DOES_LOCK_TABLE);
    int end = statement->tokens.count;
    bool is_share = sql_word_find(statement, 1, end, "share") < end,
         is_row = sql_word_find(statement, 1, end, "row") < end;
    bool is_access = sql_word_find(statement, 1, end, "access") < end;
    bool is_exclusive = sql_word_find(statement, 1, end, "exclusive") < end;
    statement->nowait = sql_word_find(statement, 1, end, "nowait") < end;
    /* SHARE ROW EXCLUSIVE, EXCLUSIVE and ACCESS EXCLUSIVE keep their like out. */
    bool keeps_out = is_exclusive && (is_share == is_row);
    bool says_mode = is_share || is_row || is_access || is_exclusive;
    statement->locks_shared = says_mode && !keeps_out;
    for (int each = 0; each < statement->table_count; each++)
        statement->tables[each].is_shared = statement->locks_shared;
}

static void copy_verb(struct sql_statement *statement) {
    int at = 1;
    statement->verb = DOES_COPY;
    if (sql_mark_at(statement, at, "(")) {
        sql_query_read(statement, at + 1, sql_behind(statement, at) - 1, 1);
        return;
    }
    int table = sql_table_add(statement, &at, 0);
    if (table < 0) return;
    statement->tables[table].is_written =
        sql_word_find(statement, at, statement->tokens.count, "from") < statement->tokens.count;
    statement->more_rows = true;
}

static void declare_verb(struct sql_statement *statement) {
    int as = sql_word_find(statement, 1, statement->tokens.count, "for");
    sql_query_read(statement, as + 1, statement->tokens.count, 0);
    for (int each = 0; each < statement->table_count; each++)
        if (statement->tables[each].is_locked) statement->not_read = "a cursor that locks the rows that it fetches";
}

static void explain_verb(struct sql_statement *statement) {
    bool analyzes = sql_word_at(statement, 1, "analyze") || sql_mark_at(statement, 1, "(");
    if (analyzes) statement->not_read = "EXPLAIN that may execute its statement";
}

static void call_verb(struct sql_statement *statement) {
    statement->not_read = "a procedure: what it does is not on the wire";
}

static void do_verb(struct sql_statement *statement) {
    statement->not_read = "a block of code: what it does is not read";
}

static void execute_verb(struct sql_statement *statement) {
    statement->not_read = "EXECUTE of a statement that was prepared by SQL's PREPARE";
}

static void table_verb(struct sql_statement *statement) {
    int at = 1;
    statement->verb = DOES_SELECT;
    statement->main = sql_table_add(statement, &at, 0);
}

static void harmless_verb(struct sql_statement *statement) {
    (void)statement;
}

static const struct {
    const char *word;
    void (*read)(struct sql_statement *statement);
} VERBS[] = {
    {"abort", rollback_verb},    {"alter", harmless_verb},
    {"analyze", harmless_verb},  {"begin", begin_verb},
    {"call", call_verb},         {"checkpoint", harmless_verb},
    {"close", harmless_verb},    {"comment", harmless_verb},
    {"commit", commit_verb},     {"copy", copy_verb},
    {"create", harmless_verb},   {"deallocate", harmless_verb},
    {"declare", declare_verb},   {"delete", query_verb},
    {"discard", discard_verb},   {"do", do_verb},
    {"drop", harmless_verb},     {"end", commit_verb},
    {"execute", execute_verb},   {"explain", explain_verb},
    {"fetch", harmless_verb},    {"grant", harmless_verb},
    {"insert", query_verb},      {"listen", harmless_verb},
    {"lock", lock_verb},         {"merge", merge_verb},
    {"move", harmless_verb},     {"notify", harmless_verb},
    {"prepare", prepare_verb},   {"refresh", harmless_verb},
    {"reindex", harmless_verb},  {"release", release_verb},
    {"reset", harmless_verb},    {"revoke", harmless_verb},
    {"rollback", rollback_verb}, {"savepoint", savepoint_verb},
    {"select", query_verb},      {"set", set_verb},
    {"show", harmless_verb},     {"start", start_verb},
    {"table", table_verb},       {"truncate", truncate_verb},
    {"unlisten", harmless_verb}, {"update", query_verb},
    {"vacuum", harmless_verb},   {"values", query_verb},
    {"with", query_verb},
};

static void verb_read(struct sql_statement *statement) {
    if (statement->tokens.count == 0) return;
    bool is_query = sql_mark_at(statement, 0, "(");
    for (size_t each = 0; each < sizeof VERBS / sizeof VERBS[0] && !is_query; each++) {
        if (!sql_word_at(statement, 0, VERBS[each].word)) continue;
        VERBS[each].read(statement);
        return;
    }
    if (is_query) query_verb(statement);
    else statement->not_read = "no statement begins with this word";
}

/* --- a statement --- */

/* Where the statement ends that begins at `from`: at a semicolon, or behind everything. */
static size_t statement_length(struct span text, size_t *used) {
    size_t at = 0, before = 0;
    int depth = 0;
    for (;;) {
        struct sql_token token = sql_token_next(text, &at);
        if (token.kind == SQL_END || (depth <= 0 && sql_token_is(&token, ";"))) break;
        depth += sql_token_is(&token, "(") ? 1 : sql_token_is(&token, ")") ? -1 : 0;
        before = at;
    }
    *used = at;
    return before;
}

struct sql_statement *sql_statement_read(struct span text, size_t *used) {
    struct sql_statement *statement = calloc(1, sizeof *statement);
    if (!statement) abort();
    size_t length = statement_length(text, used);
    statement->holders = 1;
    statement->main = statement->insert_columns = -1;
    statement->source = malloc(length + 1);
    if (!statement->source) abort();
    if (length > 0) memcpy(statement->source, text.bytes, length);
    statement->source[length] = '\0';
    sql_tokens_read(&statement->tokens, (struct span){statement->source, length});
    verb_read(statement);
    sql_advisory_calls_read(statement);
    if (statement->verb == DOES_SELECT && statement->table_count == 0 && statement->advisory_count == 0 &&
        sql_calls_unknown_function(statement))
        statement->not_read = "a function of the application: what it does is not on the wire";
    if (statement->tokens.cut) statement->not_read = "it is too long to be read to its end";
    return statement;
}

struct sql_statement *sql_statement_hold(struct sql_statement *statement) {
    statement->holders++;
    return statement;
}

void sql_statement_drop(struct sql_statement *statement) {
    assert(statement->holders > 0);
    if (--statement->holders > 0) return;
    sql_tokens_free(&statement->tokens);
    free(statement->source);
    free(statement);
}
