#include "faults/replication/election.h"

#include <signal.h>
#include <stdio.h>

#include "faults/common/process.h"
#include "harness/scheduler/hang_limit.h"

enum { PATIENCE_LEAST_MS = 100, PATIENCE_MOST_MS = 60000 };
_Static_assert(sizeof(struct election) <= FAULT_STATE, "fits the target's state");

struct election *election_of(struct fault_target *target) {
    return (void *)target->state;
}

bool election_patience(const struct fault_target *target, const char *option, int64_t *patience_ms,
                       struct fault_report *report) {
    return fault_option_number(target, option, PATIENCE_LEAST_MS, PATIENCE_MOST_MS, patience_ms, report);
}

/* --- the master is lost --- */

/* Whether the option "how" says kill. */
static bool how_option(const struct fault_target *target, bool *kills, struct fault_report *report) {
    int how = fault_option_choice(target, "how", FAULT_CHOICES("kill", "pause"), report);
    *kills = how == 0;
    return how >= 0;
}

bool election_prepare(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    bool replicated;
    if (!replicated_option(target, &replicated, report)) return false;
    if (!replication_find(&election->replication, target, false, report)) return false;
    election->ready = replicated || replication_cut(&election->replication, target, false, report);
    return election->ready;
}

bool election_begin(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    bool kills, replicated;
    if (!how_option(target, &kills, report)) return false;
    if (!replicated_option(target, &replicated, report)) return false;
    if (!election->ready && !election_prepare(target, report)) return false;
    if (replicated && !replication_drain(&election->replication, target, report)) return false;
    election->lost = kills ? process_end(target->pid, report) : process_signal_and_wait(target->pid, SIGSTOP, report);
    if (election->lost) target->driver->server_silent(target->driver->scheduler, target->server, true);
    return election->lost;
}

/* --- another is elected --- */

static const struct fault_target *find_elected(struct fault_target *target) {
    struct election *election = election_of(target);
    for (int each = 0; each < election->replication.count; each++) {
        const struct fault_target *replica = find_server(target, election->replication.replicas[each]);
        if (replica && role_is(replica->socket, "master", NULL)) return replica;
    }
    return NULL;
}

bool election_follow(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    const struct fault_target *elected;
    int64_t until_ns = hang_limit_deadline_ns(ELECTION_LIMIT_MS);
    do elected = find_elected(target);
    while (!elected && hang_limit_pause(until_ns, ELECTION_POLL_US));
    if (!elected) return fault_fail(report, "no replica of %s became a master", target->name);
    election->elected = elected->server;
    target->driver->replica_lost(elected->server);
    election->led = target->driver->clients_lead(target->server, elected->server);
    return election->led || fault_fail(report, "no client is led to %s", target->name);
}

bool election_shows(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    const struct fault_target *elected = election->led ? find_server(target, election->elected) : NULL;
    struct fault_report seen;
    if (!elected) return fault_fail(report, "no replica was elected");
    if (!role_is(elected->socket, "master", report)) return false;
    if (!replication_shows(&election->replication, target, elected->socket, &seen)) {
        *report = seen;
        return false;
    }
    snprintf(report->text, sizeof report->text, "%s was elected; %.160s", elected->name, seen.text);
    return true;
}

/* --- the old master comes back --- */

static bool bring_back(struct fault_target *target, struct fault_report *report) {
    bool kills;
    if (!how_option(target, &kills, report)) return false;
    if (!kills) return process_signal_and_wait(target->pid, SIGCONT, report);
    return target->driver->server_restart(target->server) || fault_fail(report, "%s did not start again", target->name);
}

/* Waits until the old master is a replica. Clients that are still connected to it must look for the new one, as after
 * MOVED. */
static bool election_demote(struct fault_target *target, struct fault_report *report) {
    if (!role_await(target->socket, "slave", ELECTION_LIMIT_MS, report)) return false;
    disconnect_clients(target->socket);
    return target->driver->server_follow(target->server, election_of(target)->elected) ||
           fault_fail(report, "%s does not follow", target->name);
}

static bool election_restore(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    bool was_cut = election->replication.cut, well = true;
    if (election->lost) {
        well = bring_back(target, report);
        if (well) target->driver->server_silent(target->driver->scheduler, target->server, false);
    }
    replication_mend(&election->replication, target);
    if (well && election->led) well = election_demote(target, report);
    else if (well && was_cut)
        for (int each = 0; each < election->replication.count; each++)
            well &= target->driver->server_follow(election->replication.replicas[each], target->server);
    *election = (struct election){0};
    return well;
}

bool election_heal(struct fault_target *target,
                   void (*set_patience)(const struct fault_target *target, long long patience_ms),
                   struct fault_report *report) {
    long long patience_ms = election_of(target)->patience_ms;
    bool well = election_restore(target, report);
    if (patience_ms > 0) set_patience(target, patience_ms);
    return well;
}
