#include "faults/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/process.h"

enum { RETURN_LIMIT_MS = 10000, LOOK_EVERY_US = 2000 };

int replicas_connected(const char *socket, struct fault_report *report) {
    struct answer answer;
    char count[16];
    if (!ask_good(socket, &answer, report, "INFO replication")) return 0;
    return answer_line(&answer, "connected_slaves", count, sizeof count) ? atoi(count) : 0;
}

/* Those that have the data: one that is still being sent a snapshot is connected too. */
static int replicas_online(const char *socket, struct fault_report *report) {
    struct answer answer;
    int online = 0;
    if (!ask_good(socket, &answer, report, "INFO replication")) return 0;
    for (const char *at = answer.text; (at = strstr(at, "state=online")); at++) online++;
    return online;
}

void replicas_leave(const struct fault_target *target) {
    target->means->server_replicas(target->means->conductor, target->server, 0);
}

bool replicas_return(const struct fault_target *target, int replicas, struct fault_report *report) {
    for (long waited_us = 0; waited_us < RETURN_LIMIT_MS * 1000L; waited_us += LOOK_EVERY_US) {
        if (replicas_online(target->socket, report) >= replicas) {
            target->means->server_replicas(target->means->conductor, target->server, replicas);
            return true;
        }
        process_nap_us(LOOK_EVERY_US);
    }
    return fault_fail(report, "%d replicas of %s did not come back", replicas, target->name);
}
