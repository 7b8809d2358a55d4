/* What a C lock answers to `hello` (docs/adapters.md). */
#pragma once

#include <jansson.h>

#include "harness/locks/common/lock.h"

enum { ADAPTER_THREADS = 4 }; /* of one program */

/* Why the lock cannot be hosted, a sentence without its name; NULL: it can. */
const char *adapter_excludes(const struct lock_type *type);

/* The traits of version 1, and what version 2 adds. The caller decrefs it. */
json_t *adapter_hello(const struct lock_type *type, int protocol);
