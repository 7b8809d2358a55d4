/* One lock as JSON, for the driver. The caller decrefs it; NULL when one of the lock's texts is not UTF-8. */
#ifndef LOCKSTORM_DESCRIBE_LOCK_H
#define LOCKSTORM_DESCRIBE_LOCK_H

#include <jansson.h>

#include "harness/locks/common/lock.h"

json_t *describe_lock(const struct lock_type *lock);

#endif
