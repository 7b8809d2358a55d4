/* What the files that read a statement share: finding tokens at the depth of a clause, outside of inner brackets. */
#pragma once

#include <assert.h>

#include "harness/recogniser/sql/sql_statement.h"

enum { SQL_DEEPEST = 32 }; /* queries, or brackets of conditions, in one another */

/* The token at this index; SQL_END behind the last one. */
static inline const struct sql_token *sql_token_at(const struct sql_statement *statement, int at) {
    return &statement->tokens.list[at < statement->tokens.count ? at : statement->tokens.count];
}

static inline bool sql_word_at(const struct sql_statement *statement, int at, const char *word) {
    return sql_token_is_word(sql_token_at(statement, at), word);
}

static inline bool sql_mark_at(const struct sql_statement *statement, int at, const char *mark) {
    return sql_token_is(sql_token_at(statement, at), mark);
}

static inline bool sql_name_at(const struct sql_statement *statement, int at) {
    enum sql_token_kind kind = sql_token_at(statement, at)->kind;
    return kind == SQL_WORD || kind == SQL_QUOTED;
}

/* Behind a token, or behind all that its bracket holds. */
static inline int sql_behind(const struct sql_statement *statement, int at) {
    const struct sql_token *token = sql_token_at(statement, at);
    return token->match > at ? token->match + 1 : at + 1;
}

/* Whether the token is one of these words; the list ends with NULL. */
bool sql_any_word_at(const struct sql_statement *statement, int at, const char *const *words);
/* The first of these words, or marks, in [from, to) outside of brackets; `to`: there is no such one. */
int sql_words_find(const struct sql_statement *statement, int from, int to, const char *const *words);
int sql_word_find(const struct sql_statement *statement, int from, int to, const char *word);
int sql_mark_find(const struct sql_statement *statement, int from, int to, const char *mark);

/* Copies what the identifier at `at` means, at most SQL_NAME - 1 bytes. */
void sql_name_copy(const struct sql_statement *statement, int at, char name[static SQL_NAME]);
/* Reads a name with perhaps a schema at `at`: as struct sql_table calls it. Returns what follows. */
int sql_table_name_read(const struct sql_statement *statement, int at, char name[static SQL_NAME]);

/* Adds a table that the statement names, and returns its index; -1: there are too many, which is noted. */
int sql_table_add(struct sql_statement *statement, int *at, int level);

/* Reads a query, or what changes rows, in [from, to): SELECT, INSERT, UPDATE, DELETE, WITH. `depth`: 0 for the
 * statement itself. */
void sql_query_read(struct sql_statement *statement, int from, int to, int depth);
/* Reads the condition of a WHERE in [from, to), in which the tables from index `first` on can be named. */
void sql_conditions_read(struct sql_statement *statement, int from, int to, int first, int depth);
/* Finds the calls of advisory locks. */
void sql_advisory_calls_read(struct sql_statement *statement);
/* The name of a function that is called, if there is one that the server does not bring with it. */
bool sql_calls_unknown_function(const struct sql_statement *statement);
/* Whether the value is the same whatever the rows are: no column is in it. */
bool sql_value_is_constant(const struct sql_statement *statement, struct sql_value value);
