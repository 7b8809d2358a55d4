/* What the locks on PostgreSQL share: the name of what is locked as text, and statements about it. */
#ifndef LOCKSTORM_LOCKS_PG_SESSION_H
#define LOCKSTORM_LOCKS_PG_SESSION_H

#include "harness/locks/lock.h"
#include "harness/locks/poll.h"

/* Whoever may not wait in the server asks at this pace: the other locks' own. */
extern const struct poll_pace PG_PACE;

/* The name as a bytea in text form, for $1: a name is any bytes. The caller frees. */
char *pg_name(const struct lock_options *options);

/* One statement about that name. */
const struct env_reply *pg_ask(struct lock *lock, const char *name, const char *statement);
const struct env_reply *pg_ask_blocking(struct lock *lock, const char *name, const char *statement);

/* A statement without parameters: OK, REFUSED when the server refused it, UNKNOWN. */
enum outcome pg_run(struct lock *lock, const char *statement);
/* A reply in one word: OK when there was no error. */
enum outcome pg_outcome(const struct env_reply *reply);
/* Of one row with one boolean: OK true, REFUSED false or an error, UNKNOWN. */
enum outcome pg_truth(const struct env_reply *reply);
/* Of a statement that returns a row for each that it has locked or changed: REFUSED when there was none. */
enum outcome pg_rows(const struct env_reply *reply);

#endif
