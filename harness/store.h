/* The resource behind the store: what an access is, and what became of it. In the store's memory (store.c) or in a
 * table of PostgreSQL (store_table.h). */
#ifndef LOCKSTORM_STORE_H
#define LOCKSTORM_STORE_H

#include <stdbool.h>
#include <stdint.h>

enum store_mode {
    STORE_OPEN,
    STORE_FENCE_WRITES,
    STORE_FENCE_READS_AND_WRITES,
    STORE_COMPARE_OWNER,
    STORE_COMPARE_AND_SET,
    STORE_MODE_COUNT
};

/* What a request says besides its verb. `based_on`: the version that the value was computed from, -1: none. */
struct store_access {
    unsigned object; /* enum history_object */
    bool write, atomic;
    int64_t value, token, actor, op, grant, based_on;
};

/* `version` is the object's after the access. Of one that was refused, where they are known (else 0 and -1): `value` is
 * the newest token. */
struct store_result {
    bool refused;
    int64_t value, version;
};

#endif
