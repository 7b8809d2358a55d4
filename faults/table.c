#include <stddef.h>
#include <string.h>

#include "faults/fault.h"

extern const struct fault FAULT_FAILOVER;
extern const struct fault FAULT_FAILOVER_CLUSTER;
extern const struct fault FAULT_FAILOVER_SENTINEL;
extern const struct fault FAULT_PAUSE_CLIENT;

const struct fault *const FAULT_TABLE[] = {
    &FAULT_FAILOVER, &FAULT_FAILOVER_CLUSTER, &FAULT_FAILOVER_SENTINEL, &FAULT_PAUSE_CLIENT, NULL,
};

const struct fault *fault_find(const char *name) {
    for (size_t each = 0; FAULT_TABLE[each]; each++)
        if (strcmp(FAULT_TABLE[each]->name, name) == 0) return FAULT_TABLE[each];
    return NULL;
}
