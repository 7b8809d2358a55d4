/* failover-cluster: one of the masters of a real Redis Cluster is lost, and the others elect its replica. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "faults/replication/election.h"
#include "harness/scheduler/hang_limit.h"

static bool in_cluster(const struct fault_target *target, struct fault_report *report) {
    struct admin_reply reply;
    if (!admin_command_ok(target->socket, &reply, report, "CLUSTER INFO")) return false;
    return strstr(reply.text, "cluster_state:ok") || fault_fail(report, "the cluster of %s is not ok", target->name);
}

/* The line of CLUSTER NODES with this text, as the server at `socket` sees it. */
static bool node_line(const char *socket, const char *contains, char *line, size_t size, struct fault_report *report) {
    struct admin_reply reply;
    if (!admin_command_ok(socket, &reply, report, "CLUSTER NODES")) return false;
    char *rest = reply.text;
    for (char *each; (each = strsep(&rest, "\r\n"));) {
        if (!strstr(each, contains)) continue;
        snprintf(line, size, "%s", each);
        return true;
    }
    return fault_fail(report, "CLUSTER NODES has no line with %.60s", contains);
}

/* The first range of slots in a line "id address flags master ping pong epoch link slots...". */
static bool range_of(const char *line, char *range, size_t size) {
    int at = 0;
    if (sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %n", &at) < 0 || at == 0 || !line[at]) return false;
    snprintf(range, size, "%.*s", (int)strcspn(line + at, " "), line + at);
    return true;
}

static bool remember_range(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    char line[512];
    if (!node_line(target->socket, "myself", line, sizeof line, report)) return false;
    return range_of(line, election->range, sizeof election->range) ||
           fault_fail(report, "%s is master of no slot", target->name);
}

/* Sets it at this node and all after it. */
static void failover_cluster_set_patience(const struct fault_target *first, long long patience_ms) {
    for (const struct fault_target *each = first; each; each = each->other)
        admin_command(each->socket, NULL, NULL, "CONFIG SET cluster-node-timeout %lld", patience_ms);
}

static bool remember_patience(struct fault_target *target, struct fault_report *report) {
    char value[32];
    if (!admin_setting_read(target->socket, "cluster-node-timeout", value, sizeof value, report)) return false;
    election_of(target)->patience_ms = strtoll(value, NULL, 10);
    return true;
}

/* Whether all nodes but the lost one and the elected one report that the elected one has the slots. */
static bool others_agree(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    const struct fault_target *elected = find_server(target, election->elected);
    struct admin_reply id;
    char line[512], range[24];
    if (!admin_command_ok(elected->socket, &id, report, "CLUSTER MYID")) return false;
    for (const struct fault_target *each = target->other; each; each = each->other) {
        if (each->server == election->elected) continue;
        if (!node_line(each->socket, id.text, line, sizeof line, report)) return false;
        if (!strstr(line, " master ") || !range_of(line, range, sizeof range) || strcmp(range, election->range) != 0)
            return fault_fail(report, "%s does not see %s as the master of slots %s", each->name, elected->name,
                              election->range);
    }
    return in_cluster(elected, report);
}

static bool await_agreement(struct fault_target *target, struct fault_report *report) {
    int64_t until_ns = hang_limit_deadline_ns(ELECTION_LIMIT_MS);
    do
        if (others_agree(target, report)) return true;
    while (hang_limit_pause(until_ns, ELECTION_POLL_US));
    return false;
}

static bool failover_cluster_prepare(struct fault_target *target, struct fault_report *report) {
    return in_cluster(target, report) && election_prepare(target, report);
}

static bool failover_cluster_inject(struct fault_target *target, struct fault_report *report) {
    int64_t patience_ms;
    if (!election_patience(target, "node-timeout-ms", &patience_ms, report)) return false;
    if (!in_cluster(target, report) || !remember_range(target, report)) return false;
    if (!remember_patience(target, report)) return false;
    if (!election_begin(target, report)) return false;
    failover_cluster_set_patience(target->other, patience_ms);
    return election_follow(target, report) && await_agreement(target, report);
}

static bool failover_cluster_prove(struct fault_target *target, struct fault_report *report) {
    struct fault_report seen;
    if (!election_shows(target, &seen)) {
        *report = seen;
        return false;
    }
    if (!others_agree(target, report)) return false;
    snprintf(report->text, sizeof report->text, "CLUSTER NODES: it is the master of slots %s; %.120s",
             election_of(target)->range, seen.text);
    return true;
}

/* From here on a busy machine must not look like a lost master: the others would elect the old one again. */
static bool failover_cluster_heal(struct fault_target *target, struct fault_report *report) {
    if (election_of(target)->patience_ms > 0)
        failover_cluster_set_patience(target->other, election_of(target)->patience_ms);
    return election_heal(target, failover_cluster_set_patience, report);
}

const struct fault FAULT_FAILOVER_CLUSTER = {
    .row = &FAULT_ROWS[FAULT_ID_FAILOVER_CLUSTER],
    .explanation =
        "Three masters with a replica each. The master of the resource's slot is killed (its data is in memory only)\n"
        "or stopped; the other two vote for its replica. Clients are led to it once it is elected, as a\n"
        "cluster-aware client would find it. Heal starts or continues the old master, which becomes a replica.\n"
        "replicated=no has the master refuse its replica before, from `prepare` on. The resource is named\n"
        "\"{account}\", so that all keys of a lock share a slot; a lock whose keys do not (sharded-spin) gets\n"
        "CROSSSLOT or MOVED, one that needs independent servers (redlock) has none: the trial is inconclusive with\n"
        "that reason. Not modelled: a partition. Real time only: an election consists of timeouts.",
    .target = "server",
    .options = FAULT_OPTIONS(
        {"node-timeout-ms", "500", "time without a reply, in ms, after which a node takes the master for down"},
        ELECTION_OPTIONS),
    .times = FAULT_REAL,
    .prepare = failover_cluster_prepare,
    .inject = failover_cluster_inject,
    .prove = failover_cluster_prove,
    .heal = failover_cluster_heal,
};
