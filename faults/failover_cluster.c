/* failover-cluster: one of the masters of a real Redis Cluster is lost, and the others elect its replica.
 *
 * As with sentinels: the nodes are patient until inject makes them otherwise. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/election.h"

extern const struct fault FAULT_FAILOVER_CLUSTER;

static struct election *election_of(struct fault_target *target) {
    return (void *)target->state;
}

static bool in_cluster(const struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(target->socket, &answer, report, "CLUSTER INFO")) return false;
    return strstr(answer.text, "cluster_state:ok") || fault_fail(report, "the cluster of %s is not ok", target->name);
}

/* The line of CLUSTER NODES that `contains` this, as the server at `socket` sees it. */
static bool node_line(const char *socket, const char *contains, char *line, size_t size, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(socket, &answer, report, "CLUSTER NODES")) return false;
    char *rest = answer.text;
    for (char *each; (each = strsep(&rest, "\r\n"));) {
        if (!strstr(each, contains)) continue;
        snprintf(line, size, "%s", each);
        return true;
    }
    return fault_fail(report, "CLUSTER NODES has no line with %.60s", contains);
}

/* id address flags master ping pong epoch link slots...: the first range of slots. */
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

/* From this node on. */
static void set_patience(const struct fault_target *first, long long patience_ms) {
    struct fault_report ignored;
    struct answer answer;
    for (const struct fault_target *each = first; each; each = each->other)
        ask(each->socket, &answer, &ignored, "CONFIG SET cluster-node-timeout %lld", patience_ms);
}

static bool remember_patience(struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(target->socket, &answer, report, "CONFIG GET cluster-node-timeout")) return false;
    const char *value = strchr(answer.text, '\n');
    election_of(target)->patience_ms = value ? strtoll(value + 1, NULL, 10) : 0;
    return true;
}

/* A node that is neither the lost one nor the elected one says that the elected one has the slots. */
static bool others_agree(struct fault_target *target, struct fault_report *report) {
    struct election *election = election_of(target);
    const struct fault_target *elected = taking_part(target, election->elected);
    struct answer id;
    char line[512], range[24];
    if (!ask_good(elected->socket, &id, report, "CLUSTER MYID")) return false;
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
    for (int64_t until_ms = real_ms() + ELECTION_LIMIT_MS; real_ms() < until_ms;) {
        if (others_agree(target, report)) return true;
        pause_ms(5);
    }
    return false;
}

static bool prepare(struct fault_target *target, struct fault_report *report) {
    return in_cluster(target, report) && election_prepare(&FAULT_FAILOVER_CLUSTER, target, report);
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    int64_t patience_ms;
    if (!fault_number(&FAULT_FAILOVER_CLUSTER, target, "node-timeout-ms", 100, 60000, &patience_ms, report))
        return false;
    if (!in_cluster(target, report) || !remember_range(target, report)) return false;
    if (!remember_patience(target, report)) return false;
    if (!election_begin(&FAULT_FAILOVER_CLUSTER, target, report)) return false;
    set_patience(target->other, patience_ms);
    return election_follow(target, report) && await_agreement(target, report);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    struct fault_report seen;
    if (!election_shows(target, &seen)) return *report = seen, false;
    if (!others_agree(target, report)) return false;
    snprintf(report->text, sizeof report->text, "CLUSTER NODES: it is the master of slots %s; %.120s",
             election_of(target)->range, seen.text);
    return true;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    long long patience_ms = election_of(target)->patience_ms;
    bool well = election_end(&FAULT_FAILOVER_CLUSTER, target, report);
    if (patience_ms > 0) set_patience(target, patience_ms);
    return well;
}

static const struct fault_word OPTIONS[] = {
    {"node-timeout-ms", "500", "so many ms without an answer make a node take the master for down"},
    ELECTION_WORDS,
};

const struct fault FAULT_FAILOVER_CLUSTER = {
    .name = "failover-cluster",
    .summary = "lose a master of a real Redis Cluster, whose replica is elected",
    .proof = "CLUSTER NODES of the others: the replica is master of the slots; a key written last is there or missing",
    .explanation =
        "Three masters with a replica each; the one that has the slot of the resource is killed (its data is in memory\n"
        "only) or stopped, the other two vote for its replica. Clients are led to it once it is elected, as a client that\n"
        "knows clusters would find it. Heal starts the old master again (or lets it go on): it becomes a replica.\n"
        "replicated=no has the master refuse its replica before, from `prepare` on. The resource is named \"{account}\", so\n"
        "that all keys of a lock share a slot; one whose keys do not (sharded-spin) gets CROSSSLOT or MOVED, one that needs\n"
        "independent servers (redlock) has none: the trial is inconclusive with that reason. It models no partition. Real\n"
        "time only: an election is made of timeouts.",
    .source = "Redis Cluster specification, \"Write safety\" and \"Replica election and promotion\"",
    .target = "server",
    .options = OPTIONS,
    .times = FAULT_REAL,
    .prepare = prepare,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
