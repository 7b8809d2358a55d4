/* failover: a replica becomes the master and clients are led to it, while the old master goes on and knows of nothing.
 *
 * The replica is brought into the wanted state first: it hears nothing more (from `prepare` on, so that a client can
 * take the lock in between), or it has everything and the master takes no further writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/replication.h"

extern const struct fault FAULT_FAILOVER;

enum { NS_PER_MS = 1000000, US_PER_MS = 1000, CLOCK_TOLERANCE_US = 1000000 };

struct memory {
    struct replication replication;
    bool ready; /* the replica is as it was wanted */
    bool promoted, led, ahead;
};
_Static_assert(sizeof(struct memory) <= FAULT_STATE, "fits the target's state");

static struct memory *memory_of(struct fault_target *target) {
    return (void *)target->state;
}

static bool clock_option(const struct fault_target *target, int64_t *ahead_ms, struct fault_report *report) {
    const int64_t day_ms = 86400000;
    return fault_number(&FAULT_FAILOVER, target, "clock-ms", -365 * day_ms, 365 * day_ms, ahead_ms, report);
}

static bool prepare(struct fault_target *target, struct fault_report *report) {
    struct memory *memory = memory_of(target);
    bool replicated;
    if (!replicated_option(&FAULT_FAILOVER, target, &replicated, report)) return false;
    if (!target->other) return fault_fail(report, "%s has no replica to promote", target->name);
    for (const struct fault_target *each = target->other; each; each = each->other)
        if (role_is(each->socket, "sentinel", report))
            return fault_fail(report, "sentinels watch %s: use failover-sentinel", target->name);
    if (!replication_find(&memory->replication, target, true, report)) return false;
    memory->ready = replicated || replication_cut(&memory->replication, target, &FAULT_FAILOVER, report);
    return memory->ready;
}

static bool set_clock(const struct fault_target *server, int64_t ahead_ms, struct fault_report *report) {
    const struct fault_means *means = server->means;
    if (means->server_clock(means->conductor, server->server, ahead_ms * NS_PER_MS, 0)) return true;
    return fault_fail(report, "%s runs by the machine's clock: virtual time or settable clocks are needed",
                      server->name);
}

/* Clients that are still connected to the old master would go on there. */
static void disconnect_clients(const struct fault_target *target) {
    struct fault_report ignored;
    struct answer answer;
    if (target->proxy) return; /* it has closed them */
    ask(target->socket, &answer, &ignored, "CLIENT KILL TYPE normal");
    ask(target->socket, &answer, &ignored, "CLIENT KILL TYPE pubsub");
}

static bool promote(struct fault_target *target, struct fault_report *report) {
    struct memory *memory = memory_of(target);
    struct answer answer;
    memory->promoted = ask_good(target->other->socket, &answer, report, "REPLICAOF NO ONE");
    if (!memory->promoted) return false;
    target->means->replica_lost(target->other->server);
    memory->led = target->means->clients_lead(target->server, target->other->server);
    if (!memory->led) return fault_fail(report, "no client is led to %s", target->name);
    disconnect_clients(target);
    replication_resume(&memory->replication, target);
    return true;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct memory *memory = memory_of(target);
    int64_t ahead_ms;
    bool replicated;
    if (!target->means || !target->means->clients_lead) return fault_fail(report, "nobody can lead the clients here");
    if (!replicated_option(&FAULT_FAILOVER, target, &replicated, report)) return false;
    if (!clock_option(target, &ahead_ms, report)) return false;
    if (!memory->ready && !prepare(target, report)) return false;
    target->means->unreliable(target->means->conductor); /* connections are cut, some of them while an answer is due */
    if (ahead_ms != 0) memory->ahead = set_clock(target->other, ahead_ms, report);
    if (ahead_ms != 0 && !memory->ahead) return false;
    if (replicated && !replication_drain(&memory->replication, target, report)) return false;
    return promote(target, report);
}

/* By the new master's own TIME. */
static bool clock_shows(const struct fault_target *server, int64_t ahead_ms, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(server->socket, &answer, report, "TIME")) return false;
    char *micros;
    int64_t shown_us = strtoll(answer.text, &micros, 10) * 1000 * US_PER_MS + strtoll(micros, NULL, 10);
    int64_t meant_us = server->means->server_wall_us(server->means->conductor, server->server);
    int64_t off_us = llabs(shown_us - meant_us), tolerance_us = llabs(ahead_ms) * US_PER_MS / 2;
    if (off_us <= (tolerance_us < CLOCK_TOLERANCE_US ? tolerance_us : CLOCK_TOLERANCE_US)) return true;
    return fault_fail(report, "the clock of %s is %lld us off what it was set to", server->name, (long long)off_us);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    struct memory *memory = memory_of(target);
    const struct fault_target *new = target->other;
    int64_t ahead_ms;
    if (!new) return fault_fail(report, "%s has no replica", target->name);
    if (!role_is(new->socket, "master", report) || !role_is(target->socket, "master", report)) return false;
    if (!clock_option(target, &ahead_ms, report)) return false;
    if (ahead_ms != 0 && !clock_shows(new, ahead_ms, report)) return false;
    struct fault_report seen;
    if (!replication_shows(&memory->replication, target, new->socket, &seen)) return *report = seen, false;
    snprintf(report->text, sizeof report->text, "%s is a master beside %s; %.120s", new->name, target->name, seen.text);
    return true;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    struct memory *memory = memory_of(target);
    const struct fault_target *new = target->other;
    bool follows = true, lost = memory->replication.cut;
    replication_mend(&memory->replication, target);
    if (memory->ahead) set_clock(new, 0, report);
    if (memory->promoted) follows = target->means->server_follow(target->server, new->server);
    else if (lost) follows = target->means->server_follow(new->server, target->server);
    *memory = (struct memory){0};
    return follows || fault_fail(report, "the old master did not become a replica");
}

static const struct fault_word OPTIONS[] = {
    {"clock-ms", "0", "so many ms the replica's clock is ahead (virtual time, or settable clocks)"},
    {"replicated", "no", "whether the replica has the last writes: yes, or no (then the link to it is cut first)"},
    {NULL, NULL, NULL},
};

const struct fault FAULT_FAILOVER = {
    .name = "failover",
    .summary = "promote a replica, with or without the last writes, and lead the clients to it",
    .proof = "ROLE of both; a key written last is there (replicated=yes) or missing (no) on the new master; TIME",
    .explanation =
        "The replica becomes a master (REPLICAOF NO ONE) and clients are led to it, as by a virtual address or a client\n"
        "that listens to sentinels; their connections are closed. The old master goes on by itself until heal demotes it:\n"
        "it follows the new one and what it alone had is lost. replicated=no cuts the replication link before (at\n"
        "`prepare`, or at once): through the proxy a black hole, without one the master throws its replica out and refuses\n"
        "it - not SIGSTOP, for what waits in a stopped replica's buffer arrives afterwards. replicated=yes takes no further\n"
        "writes and waits until the replica has everything. clock-ms lets its clock be ahead: leases are replicated as\n"
        "absolute times, so it may see them over. It models no detection, no election, no client that stays behind.",
    .source = "redis.io, Distributed Locks, \"Why failover-based implementations are not enough\"; redisson issue 5256",
    .target = "server",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .prepare = prepare,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
