/* SET NX PX with a random value, released by GET, a comparison in the client, and DEL. */
#include "harness/locks/redis/get_del.h"
#include "harness/locks/redis/set_nx_px.h"

extern const struct lock_type LOCK_SET_NX_GET_DEL;

static struct lock_grant set_nx_get_del_acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &SET_NX_PX_PACE, set_nx_px_attempt);
}

const struct lock_type LOCK_SET_NX_GET_DEL = {
    .name = "set-nx-get-del",
    .summary = "SET NX PX with a random value; GET, compare in the client, DEL",
    .explanation =
        "As set-nx-px, but the release is two commands: GET reads the owner, and if that is the client itself, DEL\n"
        "removes the key. Waiters poll as in set-nx-px.\n"
        "Promises: one holder while no client outlasts its lease, and while no lease ends between GET and DEL.\n"
        "Costs: 1 command to acquire, 2 to release, and the waiters' polls.\n"
        "Breaks: as set-nx-px; and when the lease runs out between GET and DEL, the DEL removes the next holder's\n"
        "lock, and a third client enters beside it.",
    .source =
        "the \"check, then delete\" that redis.io, Distributed Locks, warns of; second article; redis-py before 3.0",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 1500,
    .state_size = sizeof(struct set_nx_px),
    .open = set_nx_px_open,
    .acquire = set_nx_get_del_acquire,
    .renew = set_nx_px_renew,
    .is_held = set_nx_px_is_held,
    .release = get_del_release,
};
