#include "harness/driver/describe.h"

#include <jansson.h>
#include <stdlib.h>

#include "faults/fault.h"
#include "harness/locks/lock.h"

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
    bool built;          /* this build can speak to it */
    bool real_time_only; /* nothing moves its clock */
} SERVICES[] = {
    [LOCK_SERVICE_REDIS] = {"redis", true, false},
    [LOCK_SERVICE_ETCD] = {"etcd", LOCKSTORM_HTTP, true},
    [LOCK_SERVICE_POSTGRES] = {"postgres", LOCKSTORM_POSTGRES, false},
    [LOCK_SERVICE_ZOOKEEPER] = {"zookeeper", LOCKSTORM_ZOOKEEPER, false},
};

static char *dump(json_t *list) {
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return text;
}

static char *describe_table(const struct lock_type *const *table) {
    json_t *list = json_array();
    for (const struct lock_type *const *lock = table; *lock; lock++) {
        unsigned traits = (*lock)->traits;
        enum lock_service service = (*lock)->service;
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:s,s:s,s:s?,s:b,s:b,s:b,s:b,s:b,s:b,s:b,s:i,s:s,s:s,s:b,s:b,s:i,s:i}", "name",
                            (*lock)->name, "summary", (*lock)->summary, "explanation", (*lock)->explanation, "source",
                            (*lock)->source, "fixed", (*lock)->fixed, "lease", traits & LOCK_TRAIT_LEASE, "token",
                            traits & LOCK_TRAIT_TOKEN, "reentrant", traits & LOCK_TRAIT_REENTRANT, "fair",
                            traits & LOCK_TRAIT_FAIR, "renews", traits & LOCK_TRAIT_RENEWS, "renewable",
                            (*lock)->renew != NULL, "once", (*lock)->once, "capacity", (*lock)->capacity, "waits",
                            WAITS[(*lock)->waits], "service", SERVICES[service].name, "built", SERVICES[service].built,
                            "real_time_only", SERVICES[service].real_time_only, "nodes",
                            (*lock)->nodes ? (*lock)->nodes : 1, "replicas", (*lock)->replicas));
    }
    return dump(list);
}

char *describe_locks(void) {
    return describe_table(LOCK_TABLE);
}

char *describe_zoo(void) {
    return describe_table(LOCK_ZOO);
}

static json_t *fault_options(const struct fault *fault) {
    json_t *list = json_array();
    for (const struct fault_word *word = fault->options; word && word->name; word++)
        json_array_append_new(
            list, json_pack("{s:s,s:s?,s:s}", "name", word->name, "usual", word->usual, "meaning", word->meaning));
    return list;
}

static json_t *fault_times(const struct fault *fault) {
    json_t *list = json_array();
    if (fault->times & FAULT_VIRTUAL) json_array_append_new(list, json_string("virtual"));
    if (fault->times & FAULT_REAL) json_array_append_new(list, json_string("real"));
    return list;
}

char *describe_faults(void) {
    static const char *const moments[] = {"at once", "before it is healed", "when it is healed"};
    json_t *list = json_array();
    for (const struct fault *const *each = FAULT_TABLE; *each; each++) {
        const struct fault *fault = *each;
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:o}", "name", fault->name, "summary",
                                        fault->summary, "target", fault->target, "proof", fault->proof, "proved",
                                        moments[fault->moment], "explanation", fault->explanation, "source",
                                        fault->source, "options", fault_options(fault), "times", fault_times(fault)));
    }
    return dump(list);
}

void describe_free(char *text) {
    free(text);
}
