/* One lock as JSON, for the driver. The caller decrefs it; NULL when one of the lock's texts is not UTF-8. */
#pragma once

#include <jansson.h>

#include "harness/locks/common/lock.h"

json_t *describe_lock(const struct lock_type *lock);
