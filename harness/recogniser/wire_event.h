/* What a session does to locks and data, as the recogniser hands it out.
 *
 * The statements of a session count from 1 in the order of its requests: a command of Redis, a statement of SQL. An
 * event names the statement that brought it about. LOCK_ASKED comes with the request; everything else comes with the
 * answer, in the order in which the server did it. The server did it between asked_ns and answered_ns.
 *
 * An UPDATE or DELETE locks its rows until its transaction ends, as PostgreSQL does: that is in its ACCESS_WRITE, and
 * no lock event. ROLLBACK TO a savepoint ends locks, and undoes writes, for which there is no event. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_service { WIRE_REDIS, WIRE_POSTGRES };

enum wire_event_kind {
    LOCK_ASKED,
    LOCK_GRANTED,
    LOCK_REFUSED,        /* `refusal` says why */
    LOCK_EXTENDED,       /* its lease was set anew: lease_ms */
    LOCK_EXTEND_REFUSED, /* there was nothing to extend, or it is another owner's */
    LOCK_RELEASED,       /* by a statement, by the end of a transaction or of the session */
    LOCK_RELEASE_REFUSED,
    TRANSACTION_BEGUN, /* only by BEGIN and MULTI: a statement outside of them is a transaction of its own, see below */
    TRANSACTION_COMMITTED,
    TRANSACTION_ROLLED_BACK,
    ACCESS_READ,
    ACCESS_WRITE,
    STATEMENT_NOT_RECOGNISED, /* `reason` says what was not understood: it may lock, read or write anything */
    WIRE_EVENT_KINDS,
};

enum wire_lock_kind {
    LOCK_OF_NOTHING,           /* the event concerns no lock */
    LOCK_KEY,                  /* a key of Redis, with a lease or without */
    LOCK_LIST_POP,             /* a list of Redis, told by a hint: who pops its element holds the lock */
    LOCK_ADVISORY,             /* of PostgreSQL; until it is unlocked, or the session ends */
    LOCK_ADVISORY_TRANSACTION, /* until the transaction ends */
    LOCK_ROW,                  /* SELECT ... FOR UPDATE and its like; until the transaction ends */
    LOCK_LEASE_ROW,            /* a row that says who holds the lock, and until when */
    LOCK_OF_TABLE,             /* LOCK TABLE; until the transaction ends */
};

enum wire_mode { WIRE_EXCLUSIVE, WIRE_SHARED };

enum wire_refusal {
    NOT_REFUSED,
    REFUSED_HELD,     /* somebody else holds it */
    REFUSED_TIMEOUT,  /* the wait for it was given up */
    REFUSED_DEADLOCK, /* PostgreSQL chose this session as the victim of a deadlock */
    REFUSED_NO_ROW,   /* no row was there to be locked, or it was skipped because somebody else holds it */
    REFUSED_NOT_HELD, /* a release or an extension of what this owner does not hold */
    REFUSED_ERROR,    /* the statement failed; `reason` has the server's word */
};

/* Of the transaction that the event is in. Redis has no isolation: a transaction is executed at once. */
enum wire_isolation {
    ISOLATION_NOT_KNOWN,
    ISOLATION_READ_UNCOMMITTED,
    ISOLATION_READ_COMMITTED,
    ISOLATION_REPEATABLE_READ,
    ISOLATION_SERIALIZABLE,
};

/* Texts are not NULL; an empty one says nothing. They, and the event, are the recogniser's, and end with the call. */
struct wire_event {
    enum wire_event_kind kind;
    enum wire_service service;
    int64_t session;     /* the number that wire_session_open was given */
    int64_t statement;   /* its number in its session, from 1 */
    int64_t asked_ns;    /* when the request was handed in that made the server do it */
    int64_t answered_ns; /* when its answer was; of LOCK_ASKED, and of what the end of a session did: asked_ns */

    /* Equal for equal things, and only for them: "redis stock:7", "redis/2 stock:7" (database 2), "postgres users id=1"
     * (a row, and its lock), "postgres users" (`whole_table`), "postgres advisory 42", "postgres/other users id=1"
     * (another database than usual). Long ones end with "#" and a hash of the rest. */
    const char *object;
    /* Of an access: of rows that are not known, perhaps all. Of a row lock: of some rows, not known which. */
    bool whole_table;

    enum wire_lock_kind lock;
    enum wire_mode mode;
    const char *owner; /* the lock's value, as the statement names it */
    int64_t lease_ms;  /* from when the server executes it; 0: without end; -1: not known */
    enum wire_refusal refusal;
    bool waits;    /* LOCK_ASKED: the server answers only when it has the lock, or gives up */
    bool reenters; /* LOCK_GRANTED: its owner has held it before. LOCK_RELEASED: it is held further, by the owner or by
                      others who share it */

    bool of_lock;     /* an access to what a lock is made of: it concerns the lock and not the data behind it */
    bool inserts;     /* ACCESS_WRITE: of a new row */
    bool relative;    /* ACCESS_WRITE: what is written is computed from what is there (n = n - 1, INCR) */
    bool conditional; /* ACCESS_WRITE: it took place only because the row is as a condition says, besides its key, or
                         because no key changed that WATCH names */

    /* Each statement of PostgreSQL is in a transaction, which has a number in its session, from 1. Outside of BEGIN
     * (in_transaction is false) it is committed with the answer to its message, without an event of its own. Of Redis
     * it is 0 outside of MULTI. */
    int64_t transaction;
    bool in_transaction;
    enum wire_isolation isolation;

    const char *text;   /* the statement, with its parameters put in, cut after some 200 bytes; no passwords */
    const char *reason; /* why it was not recognised, or what is uncertain about it; why it was refused */
};

/* "lock-granted" and so on. */
const char *wire_event_kind_name(enum wire_event_kind kind);

/* Prints the event as a line without its end and without its times, as
 *   2 lock-granted "redis user:1:lock" key exclusive owner=ab12 lease=30000
 * A byte that is no printable ASCII is \xNN. The text is cut at `room`. Returns it. */
const char *wire_event_print(const struct wire_event *event, char *text, size_t room);
