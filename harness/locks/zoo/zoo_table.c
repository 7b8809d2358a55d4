#include <stddef.h>

#include "harness/locks/common/lock.h"

/* One a line, so that two changes that each add one do not conflict. */
/* clang-format off */
#define LOCKS(EACH) \
    EACH(AIOREDLOCK_46) \
    EACH(NODE_REDLOCK_299) \
    EACH(REDISSON_1626) \
    EACH(REDISSON_1966) \
    EACH(REDISSON_2172) \
    EACH(REDISSON_2515) \
    EACH(REDISSON_2714) \
    EACH(REDISSON_3004) \
    EACH(REDISSON_3332) \
    EACH(REDISSON_3712) \
    EACH(REDISSON_3730) \
    EACH(REDISSON_4456) \
    EACH(REDISSON_4871) \
    EACH(REDISSON_5019) \
    EACH(REDISSON_6026) \
    EACH(REDIS_LOCK_30) \
    EACH(REDIS_PY_415) \
    EACH(REDIS_PY_416) \
    EACH(REDIS_SEMAPHORE_175) \
    EACH(REDLOCK_NET_48) \
    EACH(REDLOCK_NET_93) \
    EACH(REDLOCK_PY_3) \
    EACH(REDLOCK_RB_36) \
    EACH(REDSYNC_72)
/* clang-format on */

#define DECLARED(NAME) extern const struct lock_type LOCK_##NAME;
LOCKS(DECLARED)

#define LISTED(NAME) &LOCK_##NAME,
const struct lock_type *const LOCK_ZOO[] = {LOCKS(LISTED) NULL};
