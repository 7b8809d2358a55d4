/* What one statement of SQL does: its verb, its tables, the rows that its conditions name, and its locks.
 *
 * It is read once, when it is prepared, without its parameters; values are ranges of its tokens, and are turned into
 * text when it is executed. It reads no more than a test of locks needs: the rest of a statement may be wrong SQL. What
 * it does not understand is `not_read`. Source: PostgreSQL's documentation, "SQL Commands". */
#pragma once

#include "harness/recogniser/sql/sql_tokens.h"
#include "harness/recogniser/wire_event.h"

enum sql_verb {
    DOES_NOTHING, /* to locks and rows; DDL is among it */
    DOES_SELECT,
    DOES_INSERT,
    DOES_UPDATE,
    DOES_DELETE,
    DOES_TRUNCATE,
    DOES_COPY,
    DOES_LOCK_TABLE,
    DOES_BEGIN,
    DOES_COMMIT,
    DOES_ROLLBACK,
    DOES_SAVEPOINT,
    DOES_ROLLBACK_TO,
    DOES_RELEASE_SAVEPOINT,
    DOES_SET_TRANSACTION, /* of the present one: `isolation` */
    DOES_SET_SESSION,     /* of those to come: `isolation` */
    DOES_DISCARD_ALL,
    DOES_NOT_SAY, /* `not_read` */
};

enum {
    SQL_NAME = 130,
    SQL_TABLES = 8,
    SQL_EQUALITIES = 16,
    SQL_VALUES = 64,
    SQL_ASSIGNMENTS = 24,
    SQL_INSERTED_ROWS = 64,
    SQL_ADVISORY_CALLS = 8,
    SQL_WITH_NAMES = 8,
    SQL_COLUMNS = 512, /* of an INSERT */
};

/* Tokens [from, to). */
struct sql_value {
    int from, to;
};

struct sql_table {
    char name[SQL_NAME]; /* without the schema public */
    char alias[SQL_NAME];
    int level; /* of the query that it is in; 0: the outermost one */
    bool is_written, is_locked;
    bool is_shared; /* of is_locked */
};

/* column = value, column in (values), column = any(value); without it the condition would be false. */
struct sql_equality {
    char column[SQL_NAME];
    int table;        /* index */
    int first, count; /* in `values` */
    bool is_array;    /* the one value is an array */
};

/* SET column = value, or a value of a row that is inserted. */
struct sql_assignment {
    char column[SQL_NAME];
    struct sql_value value;
};

enum advisory_call_kind { ADVISORY_LOCK, ADVISORY_UNLOCK, ADVISORY_UNLOCK_ALL };
struct advisory_call {
    enum advisory_call_kind kind;
    bool tries, is_shared, in_transaction;
    struct sql_value keys[2];
    int key_count;
    int column;        /* of the answer that has its result, from 0 */
    bool is_condition; /* in WHERE: it was true if there is a row */
    bool is_hidden;    /* its result is in no column of the answer */
};

struct sql_statement {
    int holders;  /* who frees it: the last one */
    char *source; /* owned */
    struct sql_tokens tokens;
    enum sql_verb verb;
    const char *not_read; /* NULL: all of it was understood */

    struct sql_table tables[SQL_TABLES];
    int table_count;
    int with_names[SQL_WITH_NAMES]; /* tokens */
    int with_count;
    int main; /* the table that it is about; -1: it has no such one */
    struct sql_equality equalities[SQL_EQUALITIES];
    int equality_count;
    struct sql_value values[SQL_VALUES];
    int value_count;
    struct sql_assignment assignments[SQL_ASSIGNMENTS]; /* of UPDATE */
    int assignment_count;
    int insert_columns;                 /* the bracket of their names; -1: they are not named */
    int insert_rows[SQL_INSERTED_ROWS]; /* the brackets of their values */
    int insert_row_count;
    bool more_rows;             /* rows are inserted that are not in insert_rows */
    bool on_conflict;           /* INSERT: another row with its key is no error */
    bool relative, conditional; /* as in struct wire_event */
    bool nowait, skips_locked;
    bool locks_shared; /* LOCK TABLE in a mode that others can have at the same time */
    struct advisory_call advisory_calls[SQL_ADVISORY_CALLS];
    int advisory_count;
    enum wire_isolation isolation; /* ISOLATION_NOT_KNOWN: it does not say */
    bool chains;                   /* COMMIT AND CHAIN */
    char savepoint[SQL_NAME];
    struct sql_value expiry_is_over, expiry_is_ahead; /* a comparison of a column that looks like the end of a lease */
    int select_from, select_to;                       /* the list of the outermost SELECT */
};

/* A parameter as text; bytes NULL: SQL's NULL. */
struct sql_parameters {
    const struct span *list;
    int count;
};

/* Reads the first statement of a text, up to the semicolon behind it: *used is its length with that. The caller is its
 * holder. */
struct sql_statement *sql_statement_read(struct span text, size_t *used);
struct sql_statement *sql_statement_hold(struct sql_statement *statement);
void sql_statement_drop(struct sql_statement *statement);

/* A value that needs no row, as text: 'it''s' is it's, 1::bigint and '1' are 1, $1 its parameter; an expression is its
 * source. False: it is NULL, or a row is needed. */
bool sql_value_add(struct short_text *text, const struct sql_statement *statement, struct sql_value value,
                   struct sql_parameters parameters);
/* The statement in one line, with its parameters in their places. */
void sql_statement_print(struct short_text *text, const struct sql_statement *statement,
                         struct sql_parameters parameters);
/* "repeatable read" and so on. */
enum wire_isolation sql_isolation_called(const char *name);
/* The value at this place, from 0, of those in a bracket. False: there are fewer, or more than SQL_COLUMNS. */
bool sql_listed_value(const struct sql_statement *statement, int bracket, int place, struct sql_value *value);
