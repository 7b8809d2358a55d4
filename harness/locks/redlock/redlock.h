/* What the Redlock variants share: set-nx-px on a majority of independent nodes. */
#ifndef LOCKSTORM_LOCKS_REDLOCK_H
#define LOCKSTORM_LOCKS_REDLOCK_H

#include "harness/locks/common/majority.h"
#include "harness/locks/common/watchdog.h"
#include "harness/locks/redis/set_nx_px.h"

enum { REDLOCK_NODES = 5 };

/* Where the variants differ. */
struct redlock_rule {
    int64_t (*now_ns)(const struct env *env); /* its clock */
    const struct poll_pace *pace;             /* of a client that was refused */
    bool checks;         /* refuses a grant that came too late, and states until when a grant is valid */
    int extensions_most; /* of one grant; 0: no limit */
    /* Published bugs (zoo/): */
    bool adds_drift;       /* to the lease, instead of subtracting it */
    bool from_answers;     /* the validity begins when the answers arrive, not when the requests are sent */
    bool extends_lapsed;   /* an extension does not check whether the validity is over */
    bool extends_silently; /* an extension neither checks the time that it took nor states a validity */
};

struct redlock {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    const struct redlock_rule *rule;
    int64_t expires_ns; /* by the variant's clock: began + lease - drift */
    int extensions;     /* of this grant */
    struct watchdog watchdog;
};

/* A random 50 to 250 ms. */
extern const struct poll_pace REDLOCK_PACE;

/* Opens a variant. OK when a majority of the nodes answers. */
enum outcome redlock_open(struct lock *lock, const struct redlock_rule *rule);
/* That of redis.io. */
enum outcome redlock_open_standard(struct lock *lock);

/* Attempts by the variant's pace. */
struct lock_grant redlock_acquire(struct lock *lock, int64_t wait_ms);

/* One attempt; what was set is released on all nodes unless it is granted. Checkpoint "after-acquire-reply" stands
 * between the last node's reply and the check. UNKNOWN only when no node answered; with fewer than a majority it is
 * REFUSED, whatever the silent nodes did: the client's own count decides. */
struct lock_grant redlock_attempt(struct lock *lock);

/* Extends the lease on a majority while the grant is valid, then states the new validity. UNKNOWN: it may have been
 * extended; the validity stated before stays. */
enum outcome redlock_extend(struct lock *lock, struct env *env);
/* The same, from the worker. */
enum outcome redlock_renew(struct lock *lock);

/* Releases it on all nodes. */
enum outcome redlock_release(struct lock *lock);

/* The same for variants with a watchdog that calls `extend` every third of the lease, from a grant to its release. */
struct lock_grant redlock_acquire_renewed(struct lock *lock, int64_t wait_ms,
                                          struct lock_grant (*try_once)(struct lock *lock),
                                          enum outcome (*extend)(struct lock *lock, struct env *env));
enum outcome redlock_release_renewed(struct lock *lock);
void redlock_close_renewed(struct lock *lock);

#endif
