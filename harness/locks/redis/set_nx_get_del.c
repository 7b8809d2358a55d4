/* SET NX PX with a random value, released by GET, a comparison in the client, and DEL. */
#include "harness/locks/redis/get_del.h"
#include "harness/locks/redis/set_nx_px.h"

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
    SET_NX_PX_FIELDS,
    .release = get_del_release,
};
