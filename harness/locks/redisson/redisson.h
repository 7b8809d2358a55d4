/* What Redisson's locks share: a hash `name` {owner -> how often it holds}, the scripts that take, renew and free it,
 * the watchdog that renews at a third of the lease, and waiting for the message that a release publishes.
 *
 * struct redisson is one such hash. It is the first member of the state of a lock that has one - redisson_open,
 * redisson_acquire, redisson_renew, redisson_release and redisson_close are then ready for its struct lock_type; the
 * redisson_hash_ functions are for locks that have several. Source: Redisson 3.2x-3.5x, RedissonLock. */
#pragma once

#include <stdatomic.h>

#include "harness/locks/common/push.h"
#include "harness/locks/common/script.h"
#include "harness/locks/common/watchdog.h"

struct redisson;

/* Sends the release script; the request has the name `request`. Answers 1: freed, 0: held once less, nil: not ours. */
typedef const struct env_reply *redisson_unlock(struct redisson *self, struct lock *lock, const char *request);

/* A release whose outcome is unknown is sent again: retryAttempts and retryInterval. */
enum { REDISSON_TRIES = 4, REDISSON_RETRY_MS = 1500 };

/* Where the locks with one hash differ from pubsub; what is NULL is as there. A lock's `variant` is such a rule, or is
 * NULL: no difference; or a struct that begins with one. */
struct redisson_rule {
    const char *acquire, *release;                             /* scripts */
    struct push_try (*attempt)(struct lock *lock, void *what); /* what: its struct redisson */
    enum outcome (*renew)(struct lock *lock, struct env *env); /* what the watchdog calls */
    redisson_unlock *unlock;
    enum watchdog_trouble trouble;
    bool publishes_nothing; /* a release: waiters poll */
};

struct redisson {
    const char *name; /* of the hash; the opener's */
    size_t name_length;
    char owner[KEY_RANDOM + 1]; /* the same as long as the lock is open: a holder may acquire again */
    struct key tagged;          /* the name in braces, for its other keys */
    struct key channel;         /* where a release is published; empty: nowhere */
    struct script acquire, renew, release;
    /* Of the lock, not of the hash: */
    atomic_uint depth; /* grants that were not released; a multi lock's watchdog reads it */
    struct watchdog watchdog;
};

/* --- one hash --- */

/* Loads the scripts and fills owner and channel, by the rule. `name` stays the caller's. */
enum outcome redisson_hash_open(struct redisson *self, struct env *env, const char *name, size_t length,
                                const struct redisson_rule *rule);
void redisson_hash_close(struct redisson *self);

/* One attempt; `what` is a struct redisson. Refused: again_ms is how long the present holder's lease lasts. */
struct push_try redisson_hash_attempt(struct lock *lock, void *what);
/* A script's answer: nil is a grant, a number is again_ms, anything else is unknown. */
struct push_try redisson_answer(const struct env_reply *reply);
enum outcome redisson_hash_renew(struct redisson *self, struct env *env, int64_t lease_ms);
/* The same without a judgement of the answer (script_outcome). */
const struct env_reply *redisson_hash_ask_renewal(struct redisson *self, struct env *env, int64_t lease_ms);

/* Releases once, by `unlock`, which is repeated while its outcome is unknown: a script that has run stores its answer
 * under the request's name, where a repetition finds it. `freed`: the client does not hold it at all any more. */
enum outcome redisson_hash_release(struct redisson *self, struct lock *lock, redisson_unlock *unlock, bool *freed);
redisson_unlock redisson_hash_unlock;
/* How long that answer is kept. */
int64_t redisson_latch_ms(const struct env *env);

/* --- a lock that has one --- */

/* The functions of struct lock_type, by the lock's rule. */
enum outcome redisson_open(struct lock *lock);
struct lock_grant redisson_acquire(struct lock *lock, int64_t wait_ms);
enum outcome redisson_renew(struct lock *lock);
enum outcome redisson_release(struct lock *lock);
enum outcome redisson_is_held(struct lock *lock);
void redisson_close(struct lock *lock);
/* The steps of redisson_acquire: waits for a grant; notes it, if it is one, and starts the watchdog with it. */
struct lock_grant redisson_wait(struct lock *lock, int64_t wait_ms);
struct lock_grant redisson_granted(struct lock *lock, struct lock_grant grant);
/* Notes a release; the watchdog ends with the last one, or at once if the client holds nothing any more. */
void redisson_released(struct redisson *self, bool freed);

/* A lock with one hash writes these fields, and then those in which it differs. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define REDISSON_FIELDS                                                                                                \
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_RENEWS, .capacity = 1, .waits = LOCK_WAITS_PUSH,    \
    .state_size = sizeof(struct redisson), .open = redisson_open, .acquire = redisson_acquire,                         \
    .renew = redisson_renew, .is_held = redisson_is_held, .release = redisson_release, .close = redisson_close
