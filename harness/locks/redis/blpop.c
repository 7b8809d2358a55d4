/* A lock string and a signal list: a refused client waits in BLPOP, and the release pushes one signal. */
#include "harness/locks/redis/signal_list.h"

static const struct signal_list_way WAY = {
    .lock_prefix = "",
    .list_prefix = "signal:",
    .release = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
               "redis.call('del', KEYS[1]) "
               "redis.call('lpush', KEYS[2], 1) "
               "return 1",
};

static enum outcome blpop_open(struct lock *lock) {
    return signal_list_open(lock, &WAY);
}

static struct lock_grant blpop_acquire(struct lock *lock, int64_t wait_ms) {
    return signal_list_acquire(lock, wait_ms, true, set_nx_px_attempt);
}

const struct lock_type LOCK_BLPOP = {
    .name = "blpop",
    .summary = "SET NX PX; a client that is refused waits in BLPOP for the signal that a release pushes",
    .explanation =
        "The lock is a string with a lease, as in set-nx-px. A client that is refused waits in BLPOP on a list, for\n"
        "one lease in whole seconds, and tries again. The release script deletes the string for its owner only and\n"
        "pushes one signal.\n"
        "Promises: one holder while no client outlasts its lease; a release wakes a waiter at once. The crash of a\n"
        "holder wakes none: a waiter may begin a full BLPOP just before the lease ends, so two leases may pass.\n"
        "Costs: 1 command to acquire, 1 script to release, 2 commands per wake-up.\n"
        "Breaks: as set-nx-px. BLPOP serves waiters in the order in which they came, but it does not hand over the\n"
        "lock: the SET of a newcomer may come first, so the lock is not fair. A release without a waiter leaves its\n"
        "signal behind: the list grows by one each time, and later waiters are woken for nothing.",
    .source = "first article, \"SET NX with BLPOP\"",
    SIGNAL_LIST_FIELDS,
    .open = blpop_open,
    .acquire = blpop_acquire,
};
