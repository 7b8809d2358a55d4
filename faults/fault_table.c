#include <stddef.h>

#include "faults/common/fault.h"
#include "faults/network/rule_faults.h"

extern const struct fault FAULT_CLIENT_CLOCK_JUMP;
extern const struct fault FAULT_CLOCK_DRIFT;
extern const struct fault FAULT_CLOCK_JUMP;
extern const struct fault FAULT_CLOSE_LINKS;
extern const struct fault FAULT_CRASH_SERVER;
extern const struct fault FAULT_EVICT;
extern const struct fault FAULT_FAILOVER;
extern const struct fault FAULT_FAILOVER_CLUSTER;
extern const struct fault FAULT_FAILOVER_SENTINEL;
extern const struct fault FAULT_FLUSH;
extern const struct fault FAULT_KILL_CLIENT;
extern const struct fault FAULT_KILL_CONNECTIONS;
extern const struct fault FAULT_KILL_SERVER;
extern const struct fault FAULT_MAX_CLIENTS;
extern const struct fault FAULT_PARTITION;
extern const struct fault FAULT_PAUSE_CLIENT;
extern const struct fault FAULT_PAUSE_COMMANDS;
extern const struct fault FAULT_PAUSE_SERVER;
extern const struct fault FAULT_READ_ONLY;
extern const struct fault FAULT_SCRIPT_FLUSH;
extern const struct fault FAULT_SLOW_SERVER;
extern const struct fault FAULT_STALL_WORKER;
extern const struct fault FAULT_SUSPEND_HOST;

/* One line each: two that are added at the same time do not conflict. */
/* clang-format off */
const struct fault *const FAULT_TABLE[] = {
    &FAULT_CLIENT_CLOCK_JUMP,
    &FAULT_CLOCK_DRIFT,
    &FAULT_CLOCK_JUMP,
    &FAULT_CLOSE_LINKS,
    &FAULT_CRASH_SERVER,
    &RULE_FAULTS[DELAY_MESSAGE].fault,
    &RULE_FAULTS[DELAY_WRITE].fault,
    &RULE_FAULTS[DROP_MESSAGE].fault,
    &RULE_FAULTS[DUPLICATE_REQUEST].fault,
    &FAULT_EVICT,
    &FAULT_FAILOVER,
    &FAULT_FAILOVER_CLUSTER,
    &FAULT_FAILOVER_SENTINEL,
    &FAULT_FLUSH,
    &FAULT_KILL_CLIENT,
    &FAULT_KILL_CONNECTIONS,
    &FAULT_KILL_SERVER,
    &RULE_FAULTS[KILL_SUBSCRIBER].fault,
    &RULE_FAULTS[LOSE_REPLY].fault,
    &FAULT_MAX_CLIENTS,
    &FAULT_PARTITION,
    &FAULT_PAUSE_CLIENT,
    &FAULT_PAUSE_COMMANDS,
    &FAULT_PAUSE_SERVER,
    &FAULT_READ_ONLY,
    &FAULT_SCRIPT_FLUSH,
    &FAULT_SLOW_SERVER,
    &FAULT_STALL_WORKER,
    &FAULT_SUSPEND_HOST,
    NULL,
};
/* clang-format on */

const struct fault *fault_find(const char *name) {
    enum fault_id id = fault_id_named(name);
    for (size_t each = 0; FAULT_TABLE[each]; each++)
        if (FAULT_TABLE[each]->row == &FAULT_ROWS[id]) return FAULT_TABLE[each];
    return NULL;
}
