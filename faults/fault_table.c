#include <stddef.h>

#include "faults/common/fault.h"

/* Sorted by name, one a line, so that two changes that each add one do not conflict. */
/* clang-format off */
#define FAULTS(EACH) \
    EACH(CLIENT_CLOCK_JUMP) \
    EACH(CLOCK_DRIFT) \
    EACH(CLOCK_JUMP) \
    EACH(CLOSE_LINKS) \
    EACH(CRASH_SERVER) \
    EACH(DELAY_MESSAGE) \
    EACH(DELAY_WRITE) \
    EACH(DROP_MESSAGE) \
    EACH(DUPLICATE_REQUEST) \
    EACH(EVICT) \
    EACH(FAILOVER) \
    EACH(FAILOVER_CLUSTER) \
    EACH(FAILOVER_SENTINEL) \
    EACH(FLUSH) \
    EACH(KILL_CLIENT) \
    EACH(KILL_CONNECTIONS) \
    EACH(KILL_SERVER) \
    EACH(KILL_SUBSCRIBER) \
    EACH(LOSE_REPLY) \
    EACH(MAX_CLIENTS) \
    EACH(PARTITION) \
    EACH(PAUSE_CLIENT) \
    EACH(PAUSE_COMMANDS) \
    EACH(PAUSE_SERVER) \
    EACH(READ_ONLY) \
    EACH(SCRIPT_FLUSH) \
    EACH(SLOW_SERVER) \
    EACH(STALL_WORKER) \
    EACH(SUSPEND_HOST)
/* clang-format on */

#define DECLARED(NAME) extern const struct fault FAULT_##NAME;
FAULTS(DECLARED)

#define LISTED(NAME) &FAULT_##NAME,
const struct fault *const FAULT_TABLE[] = {FAULTS(LISTED) NULL};

const struct fault *fault_find(const char *name) {
    enum fault_id id = fault_id_named(name);
    for (size_t each = 0; FAULT_TABLE[each]; each++)
        if (FAULT_TABLE[each]->row == &FAULT_ROWS[id]) return FAULT_TABLE[each];
    return NULL;
}
