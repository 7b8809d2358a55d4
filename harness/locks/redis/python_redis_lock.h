/* What blpop-renew and blpop-default share: the keys and the release of python-redis-lock. */
#pragma once

#include "harness/locks/redis/signal_list.h"

/* The release leaves exactly one signal, which expires after a second. */
static const struct signal_list_way PYTHON_REDIS_LOCK = {
    .lock_prefix = "lock:",
    .list_prefix = "lock-signal:",
    .release = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
               "redis.call('del', KEYS[2]) "
               "redis.call('lpush', KEYS[2], 1) "
               "redis.call('pexpire', KEYS[2], 1000) "
               "redis.call('del', KEYS[1]) "
               "return 1",
};

static enum outcome python_redis_lock_open(struct lock *lock) {
    return signal_list_open(lock, &PYTHON_REDIS_LOCK);
}
