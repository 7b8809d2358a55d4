/* failover: a replica becomes the master and clients are led to it, while the old master runs on unaware of it.
 *
 * The replica is brought into the wanted state first: it receives nothing more (from `prepare` on, so that a client can
 * take the lock in between), or it has everything and the master accepts no further writes. Decision 0027. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "faults/replication/replication.h"

enum { NS_PER_MS = 1000000, US_PER_MS = 1000, CLOCK_TOLERANCE_US = 1000000 };

struct failover_state {
    struct replication replication;
    bool ready; /* the replica is in the wanted state */
    bool promoted, led, ahead;
};
_Static_assert(sizeof(struct failover_state) <= FAULT_STATE, "fits the target's state");

static bool clock_option(const struct fault_target *target, int64_t *ahead_ms, struct fault_report *report) {
    const int64_t day_ms = 86400000;
    return fault_option_number(target, "clock-ms", -365 * day_ms, 365 * day_ms, ahead_ms, report);
}

static bool failover_prepare(struct fault_target *target, struct fault_report *report) {
    struct failover_state *state = (void *)target->state;
    bool replicated;
    if (!replicated_option(target, &replicated, report)) return false;
    if (!target->other) return fault_fail(report, "%s has no replica to promote", target->name);
    for (const struct fault_target *each = target->other; each; each = each->other)
        if (role_is(each->socket, "sentinel", report))
            return fault_fail(report, "sentinels watch %s: use failover-sentinel", target->name);
    if (!replication_find(&state->replication, target, true, report)) return false;
    state->ready = replicated || replication_cut(&state->replication, target, true, report);
    return state->ready;
}

static bool set_clock(const struct fault_target *server, int64_t ahead_ms, struct fault_report *report) {
    const struct fault_driver *driver = server->driver;
    if (driver->server_clock(driver->scheduler, server->server, ahead_ms * NS_PER_MS, 0)) return true;
    return fault_fail(report, "%s runs by the machine's clock: virtual time or settable clocks are needed",
                      server->name);
}

static bool promote(struct fault_target *target, struct fault_report *report) {
    struct failover_state *state = (void *)target->state;
    state->promoted = admin_command_ok(target->other->socket, NULL, report, "REPLICAOF NO ONE");
    if (!state->promoted) return false;
    target->driver->replica_lost(target->other->server);
    state->led = target->driver->clients_lead(target->server, target->other->server);
    if (!state->led) return fault_fail(report, "no client is led to %s", target->name);
    if (!target->proxy) disconnect_clients(target->socket); /* the proxy has closed its connections itself */
    replication_resume(&state->replication, target);
    return true;
}

static bool failover_inject(struct fault_target *target, struct fault_report *report) {
    struct failover_state *state = (void *)target->state;
    int64_t ahead_ms;
    bool replicated;
    if (!replicated_option(target, &replicated, report)) return false;
    if (!clock_option(target, &ahead_ms, report)) return false;
    if (!state->ready && !failover_prepare(target, report)) return false;
    target->driver->unreliable(target->driver->scheduler); /* connections are cut, some while a reply is due */
    if (ahead_ms != 0) state->ahead = set_clock(target->other, ahead_ms, report);
    if (ahead_ms != 0 && !state->ahead) return false;
    if (replicated && !replication_drain(&state->replication, target, report)) return false;
    return promote(target, report);
}

/* By the new master's own TIME. */
static bool clock_shows(const struct fault_target *server, int64_t ahead_ms, struct fault_report *report) {
    struct admin_reply reply;
    if (!admin_command_ok(server->socket, &reply, report, "TIME")) return false;
    char *micros;
    int64_t shown_us = strtoll(reply.text, &micros, 10) * 1000 * US_PER_MS + strtoll(micros, NULL, 10);
    int64_t meant_us = server->driver->server_wall_us(server->driver->scheduler, server->server);
    int64_t off_us = llabs(shown_us - meant_us), tolerance_us = llabs(ahead_ms) * US_PER_MS / 2;
    if (off_us <= (tolerance_us < CLOCK_TOLERANCE_US ? tolerance_us : CLOCK_TOLERANCE_US)) return true;
    return fault_fail(report, "the clock of %s is %lld us off what it was set to", server->name, (long long)off_us);
}

static bool failover_prove(struct fault_target *target, struct fault_report *report) {
    struct failover_state *state = (void *)target->state;
    const struct fault_target *new = target->other;
    int64_t ahead_ms;
    if (!new) return fault_fail(report, "%s has no replica", target->name);
    if (!role_is(new->socket, "master", report) || !role_is(target->socket, "master", report)) return false;
    if (!clock_option(target, &ahead_ms, report)) return false;
    if (ahead_ms != 0 && !clock_shows(new, ahead_ms, report)) return false;
    struct fault_report seen;
    if (!replication_shows(&state->replication, target, new->socket, &seen)) {
        *report = seen;
        return false;
    }
    snprintf(report->text, sizeof report->text, "%s is a master beside %s; %.120s", new->name, target->name, seen.text);
    return true;
}

static bool failover_heal(struct fault_target *target, struct fault_report *report) {
    struct failover_state *state = (void *)target->state;
    const struct fault_target *new = target->other;
    bool follows = true, lost = state->replication.cut;
    replication_mend(&state->replication, target);
    if (state->ahead) set_clock(new, 0, report);
    if (state->promoted) follows = target->driver->server_follow(target->server, new->server);
    else if (lost) follows = target->driver->server_follow(new->server, target->server);
    *state = (struct failover_state){0};
    return follows || fault_fail(report, "the old master did not become a replica");
}

const struct fault FAULT_FAILOVER = {
    .row = &FAULT_ROWS[FAULT_ID_FAILOVER],
    .explanation =
        "The replica becomes a master (REPLICAOF NO ONE) and clients are led to it, as by a virtual address or a\n"
        "client that listens to sentinels; their connections are closed. The old master continues until heal demotes\n"
        "it: it then follows the new one, and writes that only it had are lost. replicated=no cuts the replication\n"
        "link before (at `prepare`, or at once): a black hole at the proxy, without one the master disconnects its\n"
        "replica and refuses it - not SIGSTOP, for what waits in a stopped replica's buffer arrives afterwards.\n"
        "replicated=yes stops writes and waits until the replica has everything. clock-ms sets its clock ahead:\n"
        "leases are replicated as absolute times, so it may find them expired. Not modelled: detection, election, a\n"
        "client that stays with the old master.",
    .target = "server",
    .options = FAULT_OPTIONS(
        {"clock-ms", "0", "how far the replica's clock is ahead, in ms (virtual time, or settable clocks)"},
        {"replicated", "no", "whether the replica has the last writes: yes, or no (then its link is cut first)"}),
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .prepare = failover_prepare,
    .inject = failover_inject,
    .prove = failover_prove,
    .heal = failover_heal,
};
