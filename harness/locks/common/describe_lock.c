#include "harness/locks/common/describe_lock.h"

static const char *const WAITS[] = {[LOCK_WAITS_NOT] = "not",
                                    [LOCK_WAITS_POLLING] = "polling",
                                    [LOCK_WAITS_PUSH] = "push",
                                    [LOCK_WAITS_BLOCKING_POP] = "blocking-pop",
                                    [LOCK_WAITS_IN_SERVER] = "in-server"};

#ifndef LOCKSTORM_HTTP
#define LOCKSTORM_HTTP 0
#endif
#ifndef LOCKSTORM_POSTGRES
#define LOCKSTORM_POSTGRES 0
#endif
#ifndef LOCKSTORM_ZOOKEEPER
#define LOCKSTORM_ZOOKEEPER 0
#endif

static const struct {
    const char *name;
    bool built;          /* this build has its client library */
    bool real_time_only; /* nothing moves its clock */
} SERVICES[] = {
    [LOCK_SERVICE_REDIS] = {"redis", true, false},
    [LOCK_SERVICE_ETCD] = {"etcd", LOCKSTORM_HTTP, true},
    [LOCK_SERVICE_POSTGRES] = {"postgres", LOCKSTORM_POSTGRES, false},
    [LOCK_SERVICE_ZOOKEEPER] = {"zookeeper", LOCKSTORM_ZOOKEEPER, false},
};

json_t *describe_lock(const struct lock_type *lock) {
    unsigned traits = lock->traits;
    enum lock_service service = lock->service;
    return json_pack("{s:s,s:s,s:s,s:s,s:s?,s:b,s:b,s:b,s:b,s:b,s:b,s:b,s:i,s:s,s:s,s:b,s:b,s:i,s:i,s:i,s:b}", "name",
                     lock->name, "summary", lock->summary, "explanation", lock->explanation, "source", lock->source,
                     "fixed", lock->fixed, "lease", traits & LOCK_TRAIT_LEASE, "token", traits & LOCK_TRAIT_TOKEN,
                     "reentrant", traits & LOCK_TRAIT_REENTRANT, "fair", traits & LOCK_TRAIT_FAIR, "renews",
                     traits & LOCK_TRAIT_RENEWS, "renewable", lock->renew != NULL, "once", lock->once, "capacity",
                     lock->capacity, "waits", WAITS[lock->waits], "service", SERVICES[service].name, "built",
                     SERVICES[service].built, "real_time_only", SERVICES[service].real_time_only, "nodes",
                     lock->nodes ? lock->nodes : 1, "replicas", lock->replicas, "poll_ms", lock->poll_ms, "transaction",
                     lock->transaction);
}
