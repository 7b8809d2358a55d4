#include <stddef.h>

#include "harness/locks/lock.h"

/* One a line, so that two that are added at once do not meet. */
/* clang-format off */
extern const struct lock_type LOCK_AIOREDLOCK_46;
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

const struct lock_type *const LOCK_ZOO[] = {
    &LOCK_AIOREDLOCK_46,
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
    NULL,
};
/* clang-format on */
