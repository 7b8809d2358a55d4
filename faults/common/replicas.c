#include "faults/common/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "harness/scheduler/hang_limit.h"

enum { RETURN_LIMIT_MS = 60000, POLL_US = 2000 };

int replicas_connected(const char *socket, struct fault_report *report) {
    char count[16];
    return admin_info_read(socket, "replication", "connected_slaves", count, sizeof count, report) ? atoi(count) : 0;
}

/* How many have the data: a replica that is still receiving a snapshot is connected, too. */
static int replicas_online(const char *socket, struct fault_report *report) {
    struct admin_reply reply;
    int online = 0;
    if (!admin_command_ok(socket, &reply, report, "INFO replication")) return 0;
    for (const char *at = reply.text; (at = strstr(at, "state=online")); at++) online++;
    return online;
}

void replicas_leave(const struct fault_target *target) {
    target->driver->server_replicas(target->driver->scheduler, target->server, 0);
}

bool replicas_return(const struct fault_target *target, int replicas, struct fault_report *report) {
    int64_t until_ns = hang_limit_deadline_ns(RETURN_LIMIT_MS);
    do {
        if (replicas_online(target->socket, report) >= replicas) {
            target->driver->server_replicas(target->driver->scheduler, target->server, replicas);
            return true;
        }
    } while (hang_limit_pause(until_ns, POLL_US));
    return fault_fail(report, "%d replicas of %s did not come back", replicas, target->name);
}
