#include <stddef.h>

#include "harness/locks/lock.h"

/* One a line, so that two that are added at once do not meet. */
/* clang-format off */
extern const struct lock_type LOCK_AIOREDLOCK_46;

const struct lock_type *const LOCK_ZOO[] = {
    &LOCK_AIOREDLOCK_46,
    NULL,
};
/* clang-format on */
