/* Redisson's RLock: a re-entrant lock in a hash, a watchdog, and waiters that a release wakes by a message. */
#include "harness/locks/redisson/redisson.h"

const struct lock_type LOCK_PUBSUB = {
    .name = "pubsub",
    .summary = "Redisson's RLock: re-entrant hash, watchdog, waiters woken by a published message",
    .explanation =
        "A script raises the owner's count in the lock's hash if no other owner is in it, and sets the lease;\n"
        "otherwise it answers how long the holder's lease still lasts. A client that is refused subscribes to the\n"
        "lock's channel, tries again, so that no release falls between, and waits for the message of a release, but\n"
        "no longer than that lease or its own limit. The release script lowers the count; at zero it deletes the\n"
        "hash and publishes. It stores its answer under a name that belongs to the request, so that a release whose\n"
        "answer was lost can be sent again. A watchdog renews at a third of the lease while the lock is held.\n"
        "Promises: one holder while no process stands still for longer than its lease; a holder may acquire again;\n"
        "a waiter enters as soon as it gets the message; after a lost message, when the lease runs out.\n"
        "Costs: 1 script to acquire, a script and a DEL to release, 3 scripts per lease held, and per release one\n"
        "message to every waiter, of whom all but one are refused again.\n"
        "Breaks: a pause past the lease stops the watchdog, too: two holders, and no token by which the resource\n"
        "could recognise the late one. A renewal that is refused ends the watchdog, and the holder does not learn\n"
        "of it. In a failover to a replica without the lock's data it is granted twice.",
    .source = "Redisson, RedissonLock (unlock latch since 3.24.1)",
    REDISSON_FIELDS,
};
