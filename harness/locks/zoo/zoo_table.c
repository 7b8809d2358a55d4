#include <stddef.h>

#include "harness/locks/common/lock.h"

/* One a line, so that two changes that each add one do not conflict. */
/* clang-format off */
extern const struct lock_type LOCK_AIOREDLOCK_46;
extern const struct lock_type LOCK_NODE_REDLOCK_299;
extern const struct lock_type LOCK_REDISSON_1626;
extern const struct lock_type LOCK_REDISSON_1966;
extern const struct lock_type LOCK_REDISSON_2172;
extern const struct lock_type LOCK_REDISSON_2515;
extern const struct lock_type LOCK_REDISSON_2714;
extern const struct lock_type LOCK_REDISSON_3004;
extern const struct lock_type LOCK_REDISSON_3332;
extern const struct lock_type LOCK_REDISSON_3712;
extern const struct lock_type LOCK_REDISSON_3730;
extern const struct lock_type LOCK_REDISSON_4456;
extern const struct lock_type LOCK_REDISSON_4871;
extern const struct lock_type LOCK_REDISSON_5019;
extern const struct lock_type LOCK_REDISSON_6026;
extern const struct lock_type LOCK_REDIS_LOCK_30;
extern const struct lock_type LOCK_REDIS_PY_415;
extern const struct lock_type LOCK_REDIS_PY_416;
extern const struct lock_type LOCK_REDIS_SEMAPHORE_175;
extern const struct lock_type LOCK_REDLOCK_NET_48;
extern const struct lock_type LOCK_REDLOCK_NET_93;
extern const struct lock_type LOCK_REDLOCK_PY_3;
extern const struct lock_type LOCK_REDLOCK_RB_36;
extern const struct lock_type LOCK_REDSYNC_72;

const struct lock_type *const LOCK_ZOO[] = {
    &LOCK_AIOREDLOCK_46,
    &LOCK_NODE_REDLOCK_299,
    &LOCK_REDISSON_1626,
    &LOCK_REDISSON_1966,
    &LOCK_REDISSON_2172,
    &LOCK_REDISSON_2515,
    &LOCK_REDISSON_2714,
    &LOCK_REDISSON_3004,
    &LOCK_REDISSON_3332,
    &LOCK_REDISSON_3712,
    &LOCK_REDISSON_3730,
    &LOCK_REDISSON_4456,
    &LOCK_REDISSON_4871,
    &LOCK_REDISSON_5019,
    &LOCK_REDISSON_6026,
    &LOCK_REDIS_LOCK_30,
    &LOCK_REDIS_PY_415,
    &LOCK_REDIS_PY_416,
    &LOCK_REDIS_SEMAPHORE_175,
    &LOCK_REDLOCK_NET_48,
    &LOCK_REDLOCK_NET_93,
    &LOCK_REDLOCK_PY_3,
    &LOCK_REDLOCK_RB_36,
    &LOCK_REDSYNC_72,
    NULL,
};
/* clang-format on */
