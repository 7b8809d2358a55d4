/* Redisson's RLock: a re-entrant lock in a hash, a watchdog, and waiters that are told of a release by a message. */
#include "harness/locks/redisson.h"

extern const struct lock_type LOCK_PUBSUB;

const struct lock_type LOCK_PUBSUB = {
    .name = "pubsub",
    .summary = "Redisson's RLock: re-entrant hash, watchdog, waiters woken by a published message",
    .explanation =
        "A script raises the owner's count in the hash of the lock if nobody else is in it, and gives it the lease;\n"
        "otherwise it answers how long the holder's lease still lasts. Who is refused subscribes to the lock's channel,\n"
        "tries again - so that no release falls between - and waits for the message of a release, but no longer than\n"
        "that lease or its own limit. The release script lowers the count; at zero it deletes the hash and publishes. It\n"
        "leaves its answer under a name of its own for the request, so that a release whose answer was lost can be sent\n"
        "again. A watchdog renews at a third of the lease while the lock is held.\n"
        "Promises: one holder while no process stands still for longer than its lease; a holder may acquire again; a\n"
        "waiter enters as soon as it is told; after a lost message, when the lease runs out.\n"
        "Costs: 1 script to acquire, a script and a DEL to release, 3 scripts per lease held, and per release one\n"
        "message to every waiter, of whom all but one are refused again.\n"
        "Breaks: a pause past the lease stops the watchdog too: two holders, and no token by which the resource could\n"
        "tell. A renewal that is refused ends the watchdog and nobody tells the holder. In a failover to a replica that\n"
        "had not got the lock it is granted twice.",
    .source = "Redisson, RedissonLock (unlock latch since 3.24.1)",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct redisson),
    .open = redisson_open,
    .acquire = redisson_acquire,
    .renew = redisson_renew,
    .is_held = redisson_is_held,
    .release = redisson_release,
    .close = redisson_close,
};
