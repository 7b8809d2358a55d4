/* A session with PostgreSQL: what was prepared, what is not answered yet, and which transaction is open.
 *
 * postgres_wire.c reads the protocol and calls postgres_events.c with each statement that was asked and answered; that
 * one uses postgres_rows.c (which rows a statement is about), postgres_lease.c (rows that are locks) and
 * postgres_transaction.c (transactions, and the locks that end with them). */
#pragma once

#include "harness/recogniser/sql/sql_statement.h"
#include "harness/recogniser/wire_session.h"

enum {
    PREPARED_MOST = 1 << 10,  /* statements, and portals, that have a name */
    STATEMENT_MOST = 1 << 16, /* bytes of a text that is read */
    QUERY_STATEMENTS = 256,   /* in one message */
    PARAMETERS_MOST = 1 << 10,
    VALUE_MOST = 2048, /* bytes of a parameter that are kept */
    FORMATS_MOST = 64,
    ROWS_NAMED = 64, /* of one statement; of more only the table is named */
    ROW_NAME = 1024, /* bytes of the name of a row, before it is cut */
    HELD_MOST = 1 << 14,
    SAVEPOINTS_MOST = 64,
};

struct answer_column {
    int index; /* -1: it is not in the answer */
    uint32_t type;
};

/* Where the rows of an answer have the keys of the statement's tables. */
struct row_shape {
    bool is_known;
    struct answer_column keys[SQL_TABLES][TABLE_KEYS];
};

struct prepared_statement {
    int holders;
    struct sql_statement *sql; /* held; NULL: its text is not known, or was too long */
    uint32_t *types;           /* owned: oids of the parameters' types, 0: not told */
    int type_count;
    struct row_shape shape;
};

/* A statement with its parameters. */
struct bound_statement {
    int holders;
    struct prepared_statement *prepared; /* held; NULL: not known */
    struct span *parameters;             /* owned; the texts are behind them */
    int parameter_count;
    int formats[FORMATS_MOST]; /* of the answer's columns: 0 text, 1 binary; one: of all */
    int format_count;
};

enum postgres_step_kind { STEP_PARSE, STEP_BIND, STEP_DESCRIBE, STEP_CLOSE, STEP_STATEMENT, STEP_CALL, STEP_READY };

/* What the server has still to answer. */
struct postgres_step {
    enum postgres_step_kind kind;
    bool is_simple; /* STEP_STATEMENT: of a simple query */
    struct wire_moment moment;
    struct prepared_statement *prepared; /* held, or NULL */
    struct bound_statement *bound;       /* held, or NULL */
};

enum held_scope { HELD_BY_TRANSACTION, HELD_BY_SESSION };
struct held_lock {
    enum wire_lock_kind kind;
    enum wire_mode mode;
    bool whole_table;
    int count, savepoints; /* times that it was locked; savepoints that were set before */
    char object[];
};

/* The transaction that a statement is in. */
struct transaction_state {
    bool is_explicit; /* by BEGIN */
    bool is_open;     /* a statement has begun one */
    int64_t number;   /* of the open one, or the last one */
    enum wire_isolation isolation;
};

/* One row of an answer, or of a condition, by its name. */
struct named_rows {
    int table; /* index in the statement */
    int count;
    bool more;               /* than are kept */
    char *names[ROWS_NAMED]; /* owned */
};

struct postgres_talk {
    struct wire_session *session;
    char database[SQL_NAME]; /* "postgres", or "postgres/other" */
    bool has_started;
    struct text_table prepared, portals;
    struct postgres_step *steps; /* owned: a ring */
    size_t step_room, step_first, step_count;
    /* Of the statement that is being answered: */
    struct named_rows rows[SQL_TABLES];
    int64_t row_count;
    char answers[SQL_ADVISORY_CALLS]; /* of advisory calls: 't', 'f', or 0 */
    struct wire_moment last;          /* the statement that was answered last */
    char refused[24];                 /* SQLSTATE of the last error, or why a statement was skipped */

    enum wire_isolation isolation; /* of transactions to come */
    struct transaction_state asked, answered;
    struct text_table transaction_locks, session_locks; /* by kind, mode and object: struct held_lock */
    char savepoints[SAVEPOINTS_MOST][SQL_NAME];
    int savepoint_count;
};

/* --- postgres_wire.c --- */

struct postgres_talk *postgres_talk_begin(struct wire_session *session);
void postgres_talk_request(struct postgres_talk *talk, struct span message, int64_t at_ns);
void postgres_talk_answer(struct postgres_talk *talk, struct span message, int64_t at_ns);
/* Frees it. */
void postgres_talk_end(struct postgres_talk *talk, int64_t at_ns);

/* --- postgres_value.c --- */

/* Adds a value of the wire as text. `type`: its oid, 0: not known; binary values of unusual types are \xHEX. */
void postgres_value_add(struct short_text *text, struct span value, uint32_t type, bool is_binary);

/* --- postgres_events.c --- */

/* A statement goes to the server; `bound` may be NULL. */
void postgres_statement_asked(struct postgres_talk *talk, struct wire_moment moment,
                              const struct bound_statement *bound);
/* A row of its answer: its columns, without bytes if they are NULL. */
void postgres_statement_row(struct postgres_talk *talk, const struct bound_statement *bound,
                            const struct row_shape *shape, const struct span *columns, int count);
/* It is done: `affected` rows. */
void postgres_statement_done(struct postgres_talk *talk, struct wire_moment moment, const struct bound_statement *bound,
                             bool is_rollback, int64_t affected);
/* It failed, as talk->refused says. */
void postgres_statement_failed(struct postgres_talk *talk, struct wire_moment moment,
                               const struct bound_statement *bound);
/* An event of a statement, in its transaction. */
struct wire_event postgres_event(struct postgres_talk *talk, enum wire_event_kind kind, struct wire_moment moment,
                                 const struct transaction_state *transaction);

/* --- postgres_rows.c --- */

/* The columns that name a row. */
const char *const *postgres_table_keys(const struct postgres_talk *talk, const char *table);
/* Finds where the answer has the keys; `column` describes one: its index, table, name, and type. */
void row_shape_begin(struct row_shape *shape);
void row_shape_column(const struct postgres_talk *talk, struct row_shape *shape, const struct sql_statement *sql,
                      int index, uint32_t table, const char *name, uint32_t type);
/* "postgres users". */
void postgres_table_object(const struct postgres_talk *talk, const char *table, char object[static OBJECT_ROOM]);
/* The rows that the conditions, or the inserted values, name. `rows` is empty before. False: they do not say. */
bool postgres_rows_named(const struct postgres_talk *talk, const struct bound_statement *bound, int table,
                         struct named_rows *rows);
/* The row of an answer. */
void postgres_row_note(struct postgres_talk *talk, const struct bound_statement *bound, const struct row_shape *shape,
                       int table, const struct span *columns, int count);
void named_rows_clear(struct named_rows *rows);
/* "postgres users id=1 number=2" from its keys' values. */
struct row_name {
    char bytes[ROW_NAME];
    struct short_text text;
};
void row_name_begin(const struct postgres_talk *talk, struct row_name *name, const char *table);
void row_name_key(struct row_name *name, const char *column);
void row_name_copy(const struct row_name *name, char object[static OBJECT_ROOM]);

/* --- postgres_lease.c --- */

enum lease_action { NO_LEASE, LEASE_TAKEN, LEASE_EXTENDED, LEASE_GIVEN_BACK, LEASE_NOT_CLEAR };
struct lease_row {
    enum lease_action action;
    char object[OBJECT_ROOM], owner[OWNER_ROOM];
    int64_t lease_ms;
};
/* Whether the statement is about a row that is a lock; also fills in what it says of it. */
struct lease_row postgres_lease_read(const struct postgres_talk *talk, const struct bound_statement *bound);
/* Whether the table is known to have such rows. */
bool postgres_is_lease_table(const struct postgres_talk *talk, const char *table);

/* --- postgres_transaction.c --- */

void transaction_asked(struct postgres_talk *talk, const struct sql_statement *sql);
/* A statement begins its own transaction if none is open. */
void transaction_enter(struct transaction_state *state, enum wire_isolation isolation);
/* A statement about transactions, or savepoints, is done. False: it is another one. */
bool transaction_done(struct postgres_talk *talk, struct wire_moment moment, const struct sql_statement *sql,
                      bool is_rollback);
/* The server is ready for the next request, and says what its transaction is: I, T or E. */
void transaction_ready(struct postgres_talk *talk, int64_t at_ns, char status);
void transaction_end_session(struct postgres_talk *talk, int64_t at_ns);
/* A lock was granted; returns whether it was held before. */
bool held_lock_add(struct postgres_talk *talk, struct wire_moment moment, const struct wire_event *event);
/* One hold of the session is given back: how many are left; -1: none was known. */
int held_lock_remove(struct postgres_talk *talk, const struct wire_event *event);
/* All advisory locks of the session are given back. */
void held_session_locks_end(struct postgres_talk *talk, struct wire_moment moment, const char *reason);
