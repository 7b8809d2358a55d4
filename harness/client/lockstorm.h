/* All that a lock of your own in C needs: include this, write one struct lock_type, build a shared object
 * (docs/test-your-own-lock.md, "In C"). The plug-in may call what the headers below declare, except the tables of locks
 * and the functions for adapters, and nothing else of lockstorm's. */
#pragma once

#include "harness/environment/env.h"
#include "harness/locks/common/key.h"
#include "harness/locks/common/lock.h"
#include "harness/locks/common/majority.h"
#include "harness/locks/common/poll.h"
#include "harness/locks/common/push.h"
#include "harness/locks/common/script.h"
#include "harness/locks/common/watchdog.h"
#include "harness/locks/redis/set_nx_px.h"
#include "harness/locks/redis/signal_list.h"
#include "harness/locks/zookeeper/zookeeper_queue.h"

/* Rises whenever a plug-in that was built against older headers can no longer be loaded safely. */
#define LOCKSTORM_LOCK_ABI 2u

/* What a plug-in defines. */
extern const unsigned lockstorm_lock_abi __attribute__((visibility("default"))); /* = LOCKSTORM_LOCK_ABI */
extern const struct lock_type lockstorm_lock __attribute__((visibility("default")));
