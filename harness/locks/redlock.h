/* What the Redlock variants share: set-nx-px on a majority of independent nodes. */
#ifndef LOCKSTORM_LOCKS_REDLOCK_H
#define LOCKSTORM_LOCKS_REDLOCK_H

#include "harness/locks/majority.h"
#include "harness/locks/set_nx_px.h"
#include "harness/locks/watchdog.h"

enum { REDLOCK_NODES = 5 };

struct redlock {
    struct set_nx_px base; /* first: the shared functions see it */
    int64_t expires_ns;    /* by the variant's clock: began + lease - drift */
    int extensions;        /* of this grant */
    struct watchdog watchdog;
};

/* Where the variants differ. */
struct redlock_rule {
    int64_t (*now_ns)(const struct env *env); /* its clock */
    bool checks;                              /* refuses what came too late, and states until when a grant is valid */
    int extensions_most;                      /* of one grant; 0: no limit */
    /* Published bugs (zoo/): */
    bool adds_drift;     /* to the lease, instead of taking it off */
    bool from_answers;   /* the validity begins when the answers are there, not when they are asked for */
    bool extends_lapsed; /* an extension does not look whether the validity is over */
};

extern const struct redlock_rule REDLOCK_RULE; /* that of redis.io */
extern const struct poll_pace REDLOCK_PACE;

/* OK when a majority of the nodes answers. */
enum outcome redlock_open(struct lock *lock);

/* One attempt; what was set is released on all nodes unless it is granted. Checkpoint "after-acquire-reply" stands
 * between the last node's reply and the check. UNKNOWN only when not one node answered; with fewer than a majority it
 * is REFUSED, whatever the silent ones hold: the grant is the client's own count. */
struct lock_grant redlock_attempt(struct lock *lock, const struct redlock_rule *rule);

/* On a majority, while the grant is valid; then tells the holder. UNKNOWN: it may have been extended, and goes on to be
 * believed until what was stated before. */
enum outcome redlock_extend(struct lock *lock, struct env *env, const struct redlock_rule *rule);

/* On all nodes. */
enum outcome redlock_release(struct lock *lock);

/* The same for variants that extend every third of the lease in the background, by `extend`, as a struct watchdog does:
 * starts with a grant, ends with its release. */
struct lock_grant redlock_acquire_renewed(struct lock *lock, int64_t wait_ms,
                                          struct lock_grant (*try_once)(struct lock *lock),
                                          enum outcome (*extend)(struct lock *lock, struct env *env));
enum outcome redlock_release_renewed(struct lock *lock);
void redlock_close_renewed(struct lock *lock);

#endif
