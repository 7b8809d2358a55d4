/* What the Redlock variants share: set-nx-px on a majority of independent nodes. */
#pragma once

#include "harness/locks/common/majority.h"
#include "harness/locks/common/watchdog.h"
#include "harness/locks/redis/set_nx_px.h"

enum { REDLOCK_NODES = 5 };

/* Where the variants differ. */
struct redlock_rule {
    int64_t (*now_ns)(const struct env *env); /* its clock */
    bool checks;         /* refuses a grant that came too late, and states until when a grant is valid */
    int extensions_most; /* of one grant; 0: no limit */
    enum outcome (*extend)(struct lock *lock, struct env *env); /* what a watchdog calls every third of the lease */
    /* Published bugs (zoo/): */
    const char *renew;     /* another script than set-nx-px's, unless NULL */
    bool grants_for_ever;  /* a grant states no validity, although the client knows it */
    bool adds_drift;       /* to the lease, instead of subtracting it */
    bool from_answers;     /* the validity begins when the answers arrive, not when the requests are sent */
    bool extends_expired;  /* an extension does not check whether the validity is over */
    bool extends_silently; /* an extension neither checks the time that it took nor states a validity */
};

struct redlock {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    int64_t expires_ns;    /* by the variant's clock: began + lease - drift */
    int extensions;        /* of this grant */
    struct watchdog watchdog;
};

/* A random 50 to 250 ms, as in redsync; a random 100 to 300 ms, as in node-redlock. */
extern const struct poll_pace REDLOCK_PACE, REDLOCK_NODE_PACE;

/* That of redis.io. */
extern const struct redlock_rule REDLOCK_RULE;

/* OK when a majority of the nodes answers. */
enum outcome redlock_open(struct lock *lock);

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

/* The same for variants with a watchdog, which extends from a grant to its release. */
struct lock_grant redlock_acquire_renewed(struct lock *lock, int64_t wait_ms);
enum outcome redlock_release_renewed(struct lock *lock);
void redlock_close_renewed(struct lock *lock);

/* A variant writes these fields, its `variant` (a struct redlock_rule), and then the fields in which it differs. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define REDLOCK_FIELDS                                                                                                 \
    .traits = LOCK_TRAIT_LEASE, .capacity = 1, .waits = LOCK_WAITS_POLLING, .poll_ms = 250, .pace = &REDLOCK_PACE,     \
    .nodes = REDLOCK_NODES, .state_size = sizeof(struct redlock), .open = redlock_open, .acquire = poll_acquire,       \
    .attempt = redlock_attempt, .renew = redlock_renew, .release = redlock_release
#define REDLOCK_RENEWED_FIELDS                                                                                         \
    REDLOCK_FIELDS, .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS, .acquire = redlock_acquire_renewed, .renew = NULL, \
                    .release = redlock_release_renewed, .close = redlock_close_renewed
