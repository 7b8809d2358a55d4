/* What the locks on PostgreSQL share: the name of what is locked as text, and statements about it. */
#ifndef LOCKSTORM_LOCKS_PG_SESSION_H
#define LOCKSTORM_LOCKS_PG_SESSION_H

#include "harness/locks/common/lock.h"
#include "harness/locks/common/poll.h"

/* The pace of a client that polls because its wait is limited; the same as of other locks. */
extern const struct poll_pace PG_PACE;

/* The resource's name, which may hold any byte, as a bytea in text form, for $1. The caller frees. */
char *pg_name(const struct lock_options *options);

/* Runs one statement with that name as $1. */
const struct env_reply *pg_ask(struct lock *lock, const char *name, const char *statement);
const struct env_reply *pg_ask_blocking(struct lock *lock, const char *name, const char *statement);

/* A statement without parameters: OK, REFUSED when the server refused it, UNKNOWN. */
enum outcome pg_run(struct lock *lock, const char *statement);
/* The outcome of a reply: OK when there was no error. */
enum outcome pg_outcome(const struct env_reply *reply);
/* Of one row with one boolean: OK true, REFUSED false or an error, UNKNOWN. */
enum outcome pg_truth(const struct env_reply *reply);
/* Of a statement that returns a row for each that it has locked or changed: REFUSED when there was none. */
enum outcome pg_rows(const struct env_reply *reply);

#endif
