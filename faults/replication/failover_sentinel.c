/* failover-sentinel: the master is lost, and real sentinels detect that, elect one of theirs and promote a replica. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "faults/replication/election.h"

enum { MASTER_NAME = 64 };

/* The first sentinel among the servers that take part, from `each` on, or NULL. */
static const struct fault_target *next_sentinel(const struct fault_target *each) {
    while (each && !role_is(each->socket, "sentinel", NULL)) each = each->other;
    return each;
}

/* The name by which sentinels know the one master that they watch: that of the first master. */
static bool master_name(const struct fault_target *target, char *name, size_t size, struct fault_report *report) {
    const struct fault_target *sentinel = next_sentinel(target->other);
    struct admin_reply reply; /* field, value, field, ... in lines; the first is the name */
    if (!sentinel) return fault_fail(report, "no sentinel watches %s", target->name);
    if (!admin_command_ok(sentinel->socket, &reply, report, "SENTINEL MASTERS")) return false;
    if (strncmp(reply.text, "name\n", 5) != 0) return fault_fail(report, "%s watches no master", sentinel->name);
    snprintf(name, size, "%.*s", (int)strcspn(reply.text + 5, "\n"), reply.text + 5);
    return true;
}

/* The patience of this sentinel; 0: it does not know the master. */
static long long patience_of(const struct fault_target *sentinel, const char *master, struct fault_report *report) {
    static const char FIELD[] = "\ndown-after-milliseconds\n";
    struct admin_reply reply;
    if (!admin_command_ok(sentinel->socket, &reply, report, "SENTINEL MASTER %s", master)) return 0;
    const char *found = strstr(reply.text, FIELD);
    return found ? strtoll(found + strlen(FIELD), NULL, 10) : 0;
}

/* Returns how many sentinels have accepted it; they keep it in their files. */
static int failover_sentinel_set_patience(const struct fault_target *target, long long patience_ms,
                                          struct fault_report *report) {
    char name[MASTER_NAME];
    int accepted = 0;
    if (!master_name(target, name, sizeof name, report)) return 0;
    for (const struct fault_target *each = next_sentinel(target->other); each; each = next_sentinel(each->other))
        accepted += admin_command_ok(each->socket, NULL, report, "SENTINEL SET %s down-after-milliseconds %lld", name,
                                     patience_ms);
    return accepted;
}

static redisContext *subscribe(const char *socket, struct fault_report *report) {
    redisContext *link = admin_connection_reach(socket, ELECTION_LIMIT_MS, report);
    if (!link || admin_connection_command(link, report, "SUBSCRIBE +switch-master")) return link;
    redisFree(link);
    return NULL;
}

/* Waits for the message about this master. */
static bool await_switch(redisContext *link, const char *master, struct fault_report *report) {
    size_t length = strlen(master);
    bool seen = false;
    redisReply *push;
    while (!seen && (push = admin_connection_read(link, ELECTION_LIMIT_MS))) {
        const char *text = push->elements == 3 && push->element[2]->str ? push->element[2]->str : "";
        seen = strncmp(text, master, length) == 0 && text[length] == ' ';
        freeReplyObject(push);
    }
    return seen || fault_fail(report, "no +switch-master for %s within %d ms", master, ELECTION_LIMIT_MS);
}

static bool failover_sentinel_prepare(struct fault_target *target, struct fault_report *report) {
    if (!next_sentinel(target->other)) return fault_fail(report, "no sentinel watches %s", target->name);
    return election_prepare(target, report);
}

static bool failover_sentinel_inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_target *sentinel = next_sentinel(target->other);
    int64_t patience_ms;
    char name[MASTER_NAME];
    if (!master_name(target, name, sizeof name, report)) return false;
    if (!election_patience(target, "down-after-ms", &patience_ms, report)) return false;
    election_of(target)->patience_ms = patience_of(sentinel, name, report);
    redisContext *link = subscribe(sentinel->socket, report);
    if (!link) return false;
    bool switched = election_begin(target, report) && failover_sentinel_set_patience(target, patience_ms, report) > 0 &&
                    await_switch(link, name, report) && election_follow(target, report);
    redisFree(link);
    return switched;
}

/* Asks every sentinel for the new master's address, not only the one that has announced it. */
static bool failover_sentinel_prove(struct fault_target *target, struct fault_report *report) {
    struct fault_report seen;
    struct admin_reply reply, named;
    char name[MASTER_NAME];
    if (!master_name(target, name, sizeof name, report)) return false;
    if (!election_shows(target, &seen)) {
        *report = seen;
        return false;
    }
    int agreed = 0, asked = 0;
    for (const struct fault_target *each = next_sentinel(target->other); each; each = next_sentinel(each->other)) {
        if (!admin_command_ok(each->socket, &reply, report, "SENTINEL GET-MASTER-ADDR-BY-NAME %s", name)) return false;
        if (asked++ == 0) named = reply;
        agreed += strcmp(reply.text, named.text) == 0;
    }
    snprintf(report->text, sizeof report->text, "+switch-master was seen, %d of %d sentinels agree; %.120s", agreed,
             asked, seen.text);
    return agreed >= 1;
}

static void restore_patience(const struct fault_target *target, long long patience_ms) {
    failover_sentinel_set_patience(target, patience_ms, NULL);
}

static bool failover_sentinel_heal(struct fault_target *target, struct fault_report *report) {
    return election_heal(target, restore_patience, report);
}

const struct fault FAULT_FAILOVER_SENTINEL = {
    .row = &FAULT_ROWS[FAULT_ID_FAILOVER_SENTINEL],
    .explanation =
        "Three real sentinels (quorum 2) watch a master and its replicas. The master is killed (its data is in\n"
        "memory only) or stopped; they take it for down, elect one of them and promote a replica. Clients are led to\n"
        "it as soon as +switch-master is published, as clients that listen to it are. Heal starts or continues the\n"
        "old master; the sentinels make it a replica. replicated=no has the master refuse its replicas before, from\n"
        "`prepare` on. Not modelled: a cut between the sentinels. Without the proxy a client's open connection to a\n"
        "stopped master stays until a command has had no reply. Real time only: an election consists of timeouts.",
    .target = "server",
    .options = FAULT_OPTIONS(
        {"down-after-ms", "500", "time without a reply, in ms, after which a sentinel takes the master for down"},
        ELECTION_OPTIONS),
    .times = FAULT_REAL,
    .prepare = failover_sentinel_prepare,
    .inject = failover_sentinel_inject,
    .prove = failover_sentinel_prove,
    .heal = failover_sentinel_heal,
};
