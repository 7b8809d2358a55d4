/* Turns the messages of a session, between a program and Redis or PostgreSQL, into lock events and accesses of data.
 *
 * It is pure: no sockets, no clocks, no threads; the caller hands in messages and times, and gets events in a callback
 * before the call returns. Bytes of any kind are safe. Its memory is bounded: what does not fit is said, as an event
 * STATEMENT_NOT_RECOGNISED. What it does not understand is said as well, never guessed.
 *
 * A recogniser is what the sessions of one server share; all of them are used by one thread at a time. An instance that
 * uses two servers needs two recognisers.
 *
 * Sources: PostgreSQL's documentation, "Frontend/Backend Protocol" (chapters Message Flow and Message Formats) and "SQL
 * Commands"; the documentation of Redis, "Redis serialization protocol specification" and "Commands". */
#pragma once

#include "faults/proxy/resp.h"
#include "harness/recogniser/wire_event.h"

/* What a user says of an application whose locks cannot be seen otherwise: the entries of [locks]. */
enum lock_hint_kind {
    HINT_KEY,    /* keys of Redis like `pattern` are locks, however they are set */
    HINT_LIST,   /* lists of Redis like `pattern` are locks: who pops the element holds the lock until it is pushed */
    HINT_NO_KEY, /* keys of Redis like `pattern` are no locks, even if they are set with NX */
    HINT_SCRIPT, /* EVALSHA and EVAL of the script whose SHA1 is `pattern` (in hexadecimal) do `action` */
    HINT_TABLE,  /* rows of the table `pattern` of PostgreSQL are leases */
};
enum lock_hint_action { HINT_ACQUIRES, HINT_RELEASES, HINT_EXTENDS, HINT_HARMLESS };

/* Texts are the caller's, and live as long as the recogniser. Unused members are 0. */
struct lock_hint {
    enum lock_hint_kind kind;
    const char *pattern; /* a * stands for any bytes */
    /* Of HINT_SCRIPT: what it does to the lock KEYS[1]; which ARGV are the owner and the lease in ms, from 1, 0: none;
     * and what it answers when it has done it: "OK", "1", "nil"; NULL: 1 or OK. */
    enum lock_hint_action action;
    int owner_argument, lease_argument;
    const char *done_answer;
};

enum { TABLE_KEYS = 4 };

/* What the wire does not tell of a table. */
struct table_facts {
    const char *name;             /* as "users", or "audit.users" outside of the schema public */
    const char *keys[TABLE_KEYS]; /* the columns of its primary key; the rest is NULL */
};

struct recogniser_settings {
    enum wire_service service;
    void *context; /* of the functions below */
    void (*event)(void *context, const struct wire_event *event);
    /* The facts of a table by its oid, or by its name when `oid` is 0; NULL: not known, its key is the column id. May
     * be NULL. The facts are the caller's, and live as long as the recogniser. */
    const struct table_facts *(*table)(void *context, uint32_t oid, const char *name);
    const struct lock_hint *hints; /* the caller's, as long as the recogniser */
    int hint_count;
    enum wire_isolation isolation; /* the server's default_transaction_isolation; 0 means READ COMMITTED */
    const char *database;          /* that objects do not name; NULL: they name none (PostgreSQL) */
};

struct recogniser;
struct wire_session;

/* Ends the process when there is no memory. */
struct recogniser *recogniser_open(const struct recogniser_settings *settings);
/* After its sessions. */
void recogniser_close(struct recogniser *recogniser);

/* The text of a script that a Redis had before any session was seen: EVALSHA of it is then known. */
void recogniser_script_add(struct recogniser *recogniser, struct span text);

/* A connection, from its first byte or from between two messages. `number`: what events call it. */
struct wire_session *wire_session_open(struct recogniser *recogniser, int64_t number);
/* Whole messages in the order of each stream, as harness/library_service/message_format.h says: one or several at once,
 * or a part of one that has parts (of PostgreSQL: typed messages). A request is handed in before its answer, with the
 * time at which it reached the server; an answer with the time at which it left it. */
void wire_session_request(struct wire_session *session, struct span message, int64_t at_ns);
void wire_session_answer(struct wire_session *session, struct span message, int64_t at_ns);
/* The number of the last statement that was handed in; 0: there was none. */
int64_t wire_session_statements(const struct wire_session *session);
/* The connection has ended: of PostgreSQL, so has its transaction, and its advisory locks are released. */
void wire_session_close(struct wire_session *session, int64_t at_ns);
