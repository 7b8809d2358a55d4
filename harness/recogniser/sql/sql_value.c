#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "harness/recogniser/sql/sql_reader.h"

/* Values as text, and the calls of advisory locks. */

/* Words of an expression that are no columns. */
static const char *const NO_COLUMNS[] = {"true",
                                         "false",
                                         "null",
                                         "current_timestamp",
                                         "current_date",
                                         "current_time",
                                         "localtimestamp",
                                         "localtime",
                                         "current_user",
                                         "session_user",
                                         "default",
                                         "and",
                                         "or",
                                         "not",
                                         "is",
                                         "in",
                                         "as",
                                         "at",
                                         "time",
                                         "zone",
                                         "interval",
                                         "timestamp",
                                         "timestamptz",
                                         "date",
                                         "uuid",
                                         "numeric",
                                         "int",
                                         "integer",
                                         "bigint",
                                         "smallint",
                                         "text",
                                         "varchar",
                                         "boolean",
                                         "bool",
                                         "double",
                                         "precision",
                                         "real",
                                         "array",
                                         "bytea",
                                         "json",
                                         "jsonb",
                                         "case",
                                         "when",
                                         "then",
                                         "else",
                                         "end",
                                         "with",
                                         "without",
                                         "microseconds",
                                         "from",
                                         "epoch",
                                         NULL};

/* --- where a value is --- */

static bool is_cast(const struct sql_statement *statement, int at) {
    return sql_mark_at(statement, at, "::");
}

/* Behind ::type, and what belongs to the type: a schema, a length, brackets, several words. */
static int cast_end(const struct sql_statement *statement, int at, int to) {
    at += 2;
    while (at < to) {
        bool goes_on = sql_mark_at(statement, at, "(") || sql_mark_at(statement, at, "[") ||
                       sql_word_at(statement, at, "precision") || sql_word_at(statement, at, "varying") ||
                       sql_word_at(statement, at, "without") || sql_word_at(statement, at, "with") ||
                       sql_word_at(statement, at, "time") || sql_word_at(statement, at, "zone");
        if (sql_mark_at(statement, at, ".")) at += 2;
        else if (goes_on) at = sql_behind(statement, at);
        else break;
    }
    return at < to ? at : to;
}

/* Without brackets around it, casts behind it, CAST(... AS type), and a type in front of a string. */
static struct sql_value value_strip(const struct sql_statement *statement, struct sql_value value) {
    for (struct sql_value before = {-1, -1}; before.from != value.from || before.to != value.to;) {
        before = value;
        if (sql_mark_at(statement, value.from, "(") && sql_behind(statement, value.from) == value.to)
            value = (struct sql_value){value.from + 1, value.to - 1};
        if (sql_word_at(statement, value.from, "cast") && sql_behind(statement, value.from + 1) == value.to) {
            int as = sql_word_find(statement, value.from + 2, value.to - 1, "as");
            value = (struct sql_value){value.from + 2, as};
        }
        int sign = sql_mark_at(statement, value.from, "-") || sql_mark_at(statement, value.from, "+");
        int behind = sql_behind(statement, value.from + sign);
        if (behind < value.to && is_cast(statement, behind)) {
            int end = behind;
            while (end < value.to && is_cast(statement, end)) end = cast_end(statement, end, value.to);
            if (end == value.to) value.to = behind;
        }
        if (value.to == value.from + 2 && sql_token_at(statement, value.from)->kind == SQL_WORD &&
            sql_token_at(statement, value.from + 1)->kind == SQL_STRING)
            value.from++;
    }
    return value;
}

bool sql_value_is_constant(const struct sql_statement *statement, struct sql_value value) {
    for (int at = value.from; at < value.to; at++) {
        if (sql_token_at(statement, at)->kind == SQL_QUOTED) {
            if (!sql_mark_at(statement, at + 1, "(")) return false;
            continue;
        }
        if (is_cast(statement, at)) {
            at = cast_end(statement, at, value.to) - 1;
            continue;
        }
        if (sql_token_at(statement, at)->kind != SQL_WORD) continue;
        if (sql_word_at(statement, at, "select") || sql_word_at(statement, at, "exists")) return false;
        bool qualifies = sql_mark_at(statement, at + 1, ".") && sql_name_at(statement, at + 2) &&
                         sql_mark_at(statement, at + 3, "(");
        if (!qualifies && !sql_mark_at(statement, at + 1, "(") && !sql_any_word_at(statement, at, NO_COLUMNS))
            return false;
    }
    return value.from < value.to;
}

/* --- as text --- */

static bool is_spaced(const struct sql_statement *statement, int at) {
    const struct sql_token *token = sql_token_at(statement, at), *next = sql_token_at(statement, at + 1);
    return next->text.bytes > token->text.bytes + token->text.length;
}

static bool looks_like_number(struct span text) {
    bool digits = false;
    for (size_t each = 0; each < text.length; each++) {
        if (isdigit((unsigned char)text.bytes[each])) digits = true;
        else if (!(each == 0 && text.bytes[0] == '-') && text.bytes[each] != '.') return false;
    }
    return digits;
}

static void parameter_print(struct short_text *text, const struct sql_token *token, struct sql_parameters parameters) {
    int number = sql_token_parameter(token);
    if (number == 0 || number > parameters.count) {
        short_text_add(text, token->text);
        return;
    }
    struct span value = parameters.list[number - 1];
    bool bare = !value.bytes || looks_like_number(value);
    if (!bare) short_text_say(text, "'");
    if (value.bytes) short_text_add(text, value);
    else short_text_say(text, "null");
    if (!bare) short_text_say(text, "'");
}

static void tokens_print(struct short_text *text, const struct sql_statement *statement, struct sql_value range,
                         struct sql_parameters parameters) {
    for (int at = range.from; at < range.to && !text->cut; at++) {
        const struct sql_token *token = sql_token_at(statement, at);
        if (token->kind == SQL_PARAMETER) parameter_print(text, token, parameters);
        else short_text_add(text, token->text);
        if (at + 1 < range.to && is_spaced(statement, at)) short_text_say(text, " ");
    }
}

static bool is_word_like(const struct sql_token *token) {
    return token->kind != SQL_MARK && token->kind != SQL_OPERATOR;
}

/* An expression, equal for equal ones: without casts, in small letters, with blanks only between words. */
static void expression_print(struct short_text *text, const struct sql_statement *statement, struct sql_value range,
                             struct sql_parameters parameters) {
    bool after_word = false;
    for (int at = range.from; at < range.to && !text->cut;) {
        const struct sql_token *token = sql_token_at(statement, at);
        if (is_cast(statement, at)) {
            at = cast_end(statement, at, range.to);
            continue;
        }
        if (after_word && is_word_like(token)) short_text_say(text, " ");
        if (token->kind == SQL_PARAMETER) parameter_print(text, token, parameters);
        else if (token->kind == SQL_WORD) sql_name_add(text, token);
        else short_text_add(text, token->text);
        after_word = is_word_like(token);
        at++;
    }
}

void sql_statement_print(struct short_text *text, const struct sql_statement *statement,
                         struct sql_parameters parameters) {
    tokens_print(text, statement, (struct sql_value){0, statement->tokens.count}, parameters);
}

bool sql_value_add(struct short_text *text, const struct sql_statement *statement, struct sql_value value,
                   struct sql_parameters parameters) {
    if (!sql_value_is_constant(statement, value)) return false;
    value = value_strip(statement, value);
    bool sign = sql_mark_at(statement, value.from, "-") && value.to == value.from + 2;
    const struct sql_token *token = sql_token_at(statement, value.from + sign);
    if (value.to != value.from + 1 + sign || (sign && token->kind != SQL_NUMBER)) {
        expression_print(text, statement, value, parameters);
        return true;
    }
    int number = sql_token_parameter(token);
    if (sql_token_is_word(token, "null") || sql_token_is_word(token, "default")) return false;
    if (number > 0 && number <= parameters.count) {
        if (!parameters.list[number - 1].bytes) return false;
        short_text_add(text, parameters.list[number - 1]);
        return true;
    }
    if (token->kind == SQL_PARAMETER) return false;
    if (sign) short_text_say(text, "-");
    if (token->kind == SQL_STRING) sql_string_add(text, token->text);
    else short_text_add(text, token->text);
    return true;
}

bool sql_listed_value(const struct sql_statement *statement, int bracket, int place, struct sql_value *value) {
    int to = sql_token_at(statement, bracket)->match;
    for (int at = bracket + 1, end; at < to && place < SQL_COLUMNS; at = end + 1) {
        end = sql_mark_find(statement, at, to, ",");
        *value = (struct sql_value){at, end};
        if (place-- == 0) return true;
    }
    return false;
}

/* --- advisory locks --- */

/* pg_advisory_lock, pg_try_advisory_xact_lock_shared, and so on. */
static bool advisory_name_read(struct span name, struct advisory_call *call) {
    char text[SQL_NAME];
    struct short_text lower = short_text_in(text, sizeof text);
    sql_name_add(&lower, &(struct sql_token){.kind = SQL_WORD, .text = name});
    *call = (struct advisory_call){.tries = strncmp(text, "pg_try_advisory_", 16) == 0};
    if (!call->tries && strncmp(text, "pg_advisory_", 12) != 0) return false;
    const char *rest = text + (call->tries ? 16 : 12);
    call->in_transaction = strncmp(rest, "xact_", 5) == 0;
    if (call->in_transaction) rest += 5;
    if (strcmp(rest, "unlock_all") == 0) {
        call->kind = ADVISORY_UNLOCK_ALL;
        return true;
    }
    if (strncmp(rest, "unlock", 6) == 0) {
        call->kind = ADVISORY_UNLOCK;
        rest += 2;
    }
    call->is_shared = strcmp(rest, "lock_shared") == 0;
    return call->is_shared || strcmp(rest, "lock") == 0;
}

/* Where the answer has the result of a call at [from, to). */
static void advisory_place_find(const struct sql_statement *statement, struct advisory_call *call, int from, int to) {
    int item = statement->select_from, list_end = statement->select_to;
    if (statement->verb == DOES_SELECT && from >= item && from < list_end) {
        int end = sql_mark_find(statement, item, list_end, ",");
        for (; from >= end; end = sql_mark_find(statement, item, list_end, ",")) {
            item = end + 1;
            call->column++;
        }
        if (sql_mark_at(statement, item + 1, ".") && item + 2 == from) item += 2;
        while (is_cast(statement, to)) to = cast_end(statement, to, end);
        bool is_named = to < end && (sql_word_at(statement, to, "as") || sql_name_at(statement, to));
        call->is_hidden = item != from || !(to == end || is_named);
        return;
    }
    int where = sql_word_find(statement, list_end, statement->tokens.count, "where");
    call->is_condition = from > where;
    /* SELECT * FROM pg_try_advisory_lock(1) */
    call->is_hidden = !call->is_condition && !sql_word_at(statement, from - 1, "from");
    call->is_hidden |= statement->verb != DOES_SELECT;
}

void sql_advisory_calls_read(struct sql_statement *statement) {
    for (int at = 0; at < statement->tokens.count; at++) {
        struct advisory_call call;
        const struct sql_token *token = sql_token_at(statement, at);
        if (token->kind != SQL_WORD || token->text.length < 16 || !sql_mark_at(statement, at + 1, "(")) continue;
        if (!advisory_name_read(token->text, &call)) continue;
        for (; call.key_count < 2; call.key_count++)
            if (!sql_listed_value(statement, at + 1, call.key_count, &call.keys[call.key_count])) break;
        advisory_place_find(statement, &call, at, sql_behind(statement, at + 1));
        for (int key = 0; key < call.key_count; key++)
            if (!sql_value_is_constant(statement, call.keys[key]))
                statement->not_read = "the number of its advisory lock comes from a row";
        if (statement->advisory_count == SQL_ADVISORY_CALLS) {
            statement->not_read = "it calls more advisory locks than are looked at";
            return;
        }
        statement->advisory_calls[statement->advisory_count++] = call;
    }
}

/* Functions that neither lock nor write, and words that may stand before a bracket. */
/* clang-format off: one a line is two screens */
static const char *const KNOWN_FUNCTIONS[] = {"now",
                                              "version",
                                              "current_setting",
                                              "set_config",
                                              "coalesce",
                                              "nullif",
                                              "count",
                                              "sum",
                                              "min",
                                              "max",
                                              "avg",
                                              "nextval",
                                              "currval",
                                              "lastval",
                                              "setval",
                                              "txid_current",
                                              "statement_timestamp",
                                              "clock_timestamp",
                                              "transaction_timestamp",
                                              "timezone",
                                              "date_trunc",
                                              "extract",
                                              "age",
                                              "gen_random_uuid",
                                              "random",
                                              "md5",
                                              "hashtext",
                                              "hashtextextended",
                                              "generate_series",
                                              "unnest",
                                              "row_number",
                                              "upper",
                                              "lower",
                                              "length",
                                              "cast",
                                              "concat",
                                              "format",
                                              "substring",
                                              "trim",
                                              "replace",
                                              "abs",
                                              "floor",
                                              "ceil",
                                              "round",
                                              "greatest",
                                              "least",
                                              "current_schema",
                                              "current_database",
                                              "exists",
                                              "any",
                                              "all",
                                              "values",
                                              "array",
                                              "row",
                                              "in",
                                              "and",
                                              "or",
                                              "not",
                                              "interval",
                                              "case",
                                              "when",
                                              "as",
                                              "quote_ident",
                                              "inet_server_addr",
                                              "has_table_privilege",
                                              NULL};
/* clang-format on */

bool sql_calls_unknown_function(const struct sql_statement *statement) {
    static const char *const FAMILIES[] = {"pg_", "to_", "json", "array_", "string_", "regexp_", "date_", "has_", NULL};
    for (int at = 0; at < statement->tokens.count; at++) {
        const struct sql_token *token = sql_token_at(statement, at);
        if (!sql_name_at(statement, at) || !sql_mark_at(statement, at + 1, "(")) continue;
        bool known = sql_any_word_at(statement, at, KNOWN_FUNCTIONS);
        for (int each = 0; FAMILIES[each] && !known; each++) {
            size_t length = strlen(FAMILIES[each]);
            known = token->text.length > length && strncasecmp(token->text.bytes, FAMILIES[each], length) == 0;
        }
        if (!known) return true;
    }
    return false;
}
