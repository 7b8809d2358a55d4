#include "harness/explorer/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/simulation/world_state.h"

enum { NAME = 40, AMOUNT_MOST_MS = 1000000000 };

static const char WATCHDOG[] = "-watchdog", REPLICA[] = "-replica-", QUIET[] = "quiet";

/* --- a value --- */

void schedule_add(struct schedule *schedule, struct deviation deviation) {
    if (schedule->count == schedule->room) {
        schedule->room = schedule->room ? schedule->room * 2 : 64;
        schedule->deviations = realloc(schedule->deviations, schedule->room * sizeof *schedule->deviations);
        if (!schedule->deviations) abort();
    }
    schedule->deviations[schedule->count++] = deviation;
}

void schedule_copy(struct schedule *to, const struct schedule *from) {
    to->count = 0;
    for (size_t each = 0; each < from->count; each++) schedule_add(to, from->deviations[each]);
}

void schedule_free(struct schedule *schedule) {
    free(schedule->deviations);
    *schedule = (struct schedule){0};
}

/* --- as text --- */

/* A node's first replica has the node's name. */
static void replica_write(const char *what, int who, char name[NAME]) {
    int server = replica_server(who);
    snprintf(name, NAME, "%s-%d", what, replica_node(who) + 1);
    if (server > 1) snprintf(name + strlen(name), NAME - strlen(name), "%s%d", REPLICA, server);
}

static const char *name_write(enum choice_kind kind, int who, char name[NAME]) {
    if (kind == CHOICE_CLOCK) snprintf(name, NAME, "clock");
    else if (kind == CHOICE_LATE) snprintf(name, NAME, "late-%d", who + 1);
    else if (kind == CHOICE_STREAM) replica_write("stream", who, name);
    else if (choice_strikes_replica(kind)) replica_write("redis", who, name);
    else if (choice_strikes_node(kind)) snprintf(name, NAME, "redis-%d", who + 1);
    else if (choice_strikes_client(kind)) snprintf(name, NAME, "client-%d", who + 1);
    else snprintf(name, NAME, "client-%d%s", who / TASKS_PER_CLIENT + 1, who % TASKS_PER_CLIENT ? WATCHDOG : "");
    return name;
}

const char *deviation_write(const struct deviation *deviation, char line[SCHEDULE_LINE]) {
    char usual[NAME], name[NAME], amount[24] = "";
    const struct choice *instead = &deviation->instead;
    const char *fault = choice_fault_name(instead->kind);
    name_write(deviation->usual.kind, deviation->usual.who, usual);
    if (instead->kind == CHOICE_QUIET) snprintf(name, sizeof name, "%s", QUIET);
    else name_write(instead->kind, instead->who, name);
    if (choice_has_amount(instead->kind)) snprintf(amount, sizeof amount, " %lld", (long long)instead->amount);
    snprintf(line, SCHEDULE_LINE, "before %s %llu: %s%s%s%s", usual, (unsigned long long)deviation->step,
             fault ? fault : "", fault ? " " : "", name, amount);
    return line;
}

/* The number after a prefix, which counts from 1, as an index from 0; -1: the name is another. */
static int numbered(const char *name, const char *prefix, const char **rest) {
    size_t length = strlen(prefix);
    char *end = NULL;
    long number = strncmp(name, prefix, length) == 0 ? strtol(name + length, &end, 10) : 0;
    if (number < 1 || number > WORLD_TASKS || end[-1] < '0' || end[-1] > '9') return -1;
    *rest = end;
    return (int)number - 1;
}

/* Reads what follows a node's number: nothing, or the number of a replica. */
static bool replica_read(int node, const char *rest, int *who) {
    const char *end = rest;
    int second = strcmp(rest, "") == 0 ? 0 : numbered(rest, REPLICA, &end);
    if (node < 0 || node >= WORLD_NODES || second < 0 || second >= WORLD_REPLICAS || *end != '\0') return false;
    *who = replica_number(node, second + 1);
    return true;
}

static bool name_read(const char *name, enum choice_kind fault, struct choice *choice) {
    const char *rest = "";
    int client = numbered(name, "client-", &rest), node = client < 0 ? numbered(name, "redis-", &rest) : -1;
    int late = client < 0 && node < 0 ? numbered(name, "late-", &rest) : -1;
    int stream = client < 0 && node < 0 && late < 0 ? numbered(name, "stream-", &rest) : -1;
    bool watchdog = client >= 0 && strcmp(rest, WATCHDOG) == 0, whole = *rest == '\0';
    choice->kind = fault;
    if (choice_strikes_node(fault)) {
        choice->who = node;
        return node >= 0 && whole;
    }
    if (choice_strikes_replica(fault)) return replica_read(node, rest, &choice->who);
    if (choice_strikes_client(fault)) {
        choice->who = client;
        return client >= 0 && whole;
    }
    choice->who = client * TASKS_PER_CLIENT + watchdog;
    if (fault) return client >= 0 && (whole || watchdog);
    if (client >= 0) {
        choice->kind = CHOICE_TASK;
        return whole || watchdog;
    }
    if (late >= 0) {
        choice->kind = CHOICE_LATE;
        choice->who = late;
        return whole;
    }
    if (stream >= 0) {
        choice->kind = CHOICE_STREAM;
        return replica_read(stream, rest, &choice->who);
    }
    choice->kind = CHOICE_CLOCK;
    choice->who = 0;
    return strcmp(name, "clock") == 0;
}

bool deviation_read(const char *line, struct deviation *deviation, const char **reason) {
    char usual[NAME], colon[2], first[NAME], second[NAME] = "", more[2];
    unsigned long long step;
    long long amount = 0;
    *deviation = (struct deviation){0};
    int words =
        sscanf(line, "before %39s %llu%1[:] %39s %39s %lld %1s", usual, &step, colon, first, second, &amount, more);
    *reason = "a line is: before WHO STEP: WHO, or: before WHO STEP: FAULT TARGET [MILLISECONDS]";
    if (words < 4 || words > 6 || step == 0) return false;
    *reason = "only client-N, client-N-watchdog, late-N, stream-N, stream-N-replica-2 and clock take steps";
    if (!name_read(usual, CHOICE_NONE, &deviation->usual)) return false;
    deviation->step = step;
    if (words == 4 && strcmp(first, QUIET) == 0) {
        deviation->instead.kind = CHOICE_QUIET;
        return true;
    }
    if (words == 4) return name_read(first, CHOICE_NONE, &deviation->instead);
    enum choice_kind fault = choice_fault_named(first);
    *reason = "a simulation has no such fault (`lockstorm faults` lists them)";
    if (!fault) return false;
    *reason = "this fault has another target: client-N for pause-client, pause-client-before-send, kill-client and "
              "client-clock-jump; redis-N for clock-jump, crash-server and crash-server-empty; redis-N or "
              "redis-N-replica-2 for failover and stall-replica; client-N or client-N-watchdog for all others";
    if (!name_read(second, fault, &deviation->instead)) return false;
    *reason = choice_has_amount(fault) ? "milliseconds are missing or out of range" : "this fault has no duration";
    if (choice_has_amount(fault) != (words == 6)) return false;
    deviation->instead.amount = amount;
    bool backwards = choice_sets_clock(fault) && amount < 0 && amount >= -AMOUNT_MOST_MS;
    return words == 5 || backwards || (amount > 0 && amount <= AMOUNT_MOST_MS);
}
