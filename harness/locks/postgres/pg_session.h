/* What the locks on PostgreSQL share: the name of what is locked as text, and statements about it. */
#pragma once

#include "harness/locks/common/lock.h"
#include "harness/locks/common/poll.h"

/* The pace of a client that polls because its wait is limited; the same as of other locks. */
extern const struct poll_pace PG_PACE;

/* The state of such a lock begins with it. */
struct pg_session {
    char *name; /* the resource's, which may hold any byte, as a bytea in text form, for $1 */
};

/* Makes the name; sends nothing. */
void pg_session_open(struct lock *lock);
/* The same, and the session begins. */
enum outcome pg_session_begin(struct lock *lock);
void pg_session_close(struct lock *lock);

/* Runs one statement with the name as $1. */
const struct env_reply *pg_ask(struct lock *lock, const char *statement);
const struct env_reply *pg_ask_blocking(struct lock *lock, const char *statement);

/* A statement without parameters: OK, REFUSED when the server refused it, UNKNOWN. */
enum outcome pg_run(struct lock *lock, const char *statement);
/* The outcome of a reply: OK when there was no error. */
enum outcome pg_outcome(const struct env_reply *reply);
/* Of one row with one boolean: OK true, REFUSED false or an error, UNKNOWN. */
enum outcome pg_truth(const struct env_reply *reply);
/* OK inside a transaction that has locked or changed a row: it has a transaction number. */
enum outcome pg_transaction_holds_row(struct lock *lock);
/* Of a statement that returns a row for each that it has locked or changed: REFUSED when there was none. */
enum outcome pg_rows(const struct env_reply *reply);

/* Of this session's advisory lock on the name. */
enum outcome pg_advisory_is_held(struct lock *lock);
#define PG_ADVISORY_KEY "hashtextextended($1, 0)"

/* A lock writes these fields, and then those in which it differs. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define PG_FIELDS                                                                                                      \
    .capacity = 1, .poll_ms = 1500, .pace = &PG_PACE, .service = LOCK_SERVICE_POSTGRES,                                \
    .state_size = sizeof(struct pg_session), .close = pg_session_close
