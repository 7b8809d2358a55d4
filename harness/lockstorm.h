/* All that a lock of your own in C needs: include this, write one struct lock_type, build a shared object
 * (docs/test-your-own-lock.md, "In C"). What the headers below declare is there when lockstorm loads it - but for the
 * tables of locks and what hosts adapters - and nothing else of lockstorm's is. */
#ifndef LOCKSTORM_H
#define LOCKSTORM_H

#include "harness/env.h"
#include "harness/locks/key.h"
#include "harness/locks/lock.h"
#include "harness/locks/majority.h"
#include "harness/locks/poll.h"
#include "harness/locks/script.h"
#include "harness/locks/set_nx_px.h"
#include "harness/locks/watchdog.h"

/* Rises whenever something built against older headers could not be loaded safely any more. */
#define LOCKSTORM_LOCK_ABI 1u

/* What a plug-in defines. */
extern const unsigned lockstorm_lock_abi __attribute__((visibility("default"))); /* = LOCKSTORM_LOCK_ABI */
extern const struct lock_type lockstorm_lock __attribute__((visibility("default")));

#endif
