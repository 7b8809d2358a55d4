/* What set-nx-px shares with its variants: the owner's random value and everything after the grant. */
#pragma once

#include "harness/locks/common/key.h"
#include "harness/locks/common/lock.h"
#include "harness/locks/common/poll.h"
#include "harness/locks/common/script.h"

enum { SET_NX_PX_OWNER = KEY_RANDOM };

struct set_nx_px {
    char owner[SET_NX_PX_OWNER + 1]; /* new for every attempt, so no old grant can be mistaken for this one */
    struct script release;
    struct script renew;
};

extern const struct poll_pace SET_NX_PX_PACE;

/* Each asks one node and waits at most limit_ms for its answer. env is the lock's, or its watchdog's. Scripts whose
 * source is set before set_nx_px_load_on are loaded instead of the usual ones. */
enum outcome set_nx_px_load_on(struct lock *lock, int node);
enum outcome set_nx_px_set_on(struct lock *lock, struct env *env, int node, int64_t limit_ms);
enum outcome set_nx_px_renew_on(struct lock *lock, struct env *env, int node, int64_t limit_ms);
enum outcome set_nx_px_release_on(struct lock *lock, struct env *env, int node, int64_t limit_ms);

/* A reply to SET ... NX as an outcome. */
enum outcome set_nx_outcome(const struct env_reply *reply);

/* The same on the only node, as struct lock_type has them. */
enum outcome set_nx_px_open(struct lock *lock);
void set_nx_px_new_owner(struct lock *lock);
struct lock_grant set_nx_px_attempt(struct lock *lock);
struct lock_grant set_nx_px_attempt_as(struct lock *lock); /* with the present owner */
enum outcome set_nx_px_renew(struct lock *lock);
enum outcome set_nx_px_renew_in(struct lock *lock, struct env *env); /* the same in a watchdog's environment */
enum outcome set_nx_px_release(struct lock *lock);
enum outcome set_nx_px_is_held(struct lock *lock);

/* A variant writes these fields, and then those in which it differs. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define SET_NX_PX_FIELDS                                                                                               \
    .traits = LOCK_TRAIT_LEASE, .capacity = 1, .waits = LOCK_WAITS_POLLING, .poll_ms = 1500, .pace = &SET_NX_PX_PACE,  \
    .state_size = sizeof(struct set_nx_px), .open = set_nx_px_open, .acquire = poll_acquire,                           \
    .attempt = set_nx_px_attempt, .renew = set_nx_px_renew, .is_held = set_nx_px_is_held, .release = set_nx_px_release
