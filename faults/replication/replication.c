#include "faults/replication/replication.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "faults/common/proxy_rule.h"
#include "harness/scheduler/hang_limit.h"

enum { CATCH_UP_LIMIT_MS = 10000, CATCH_UP_POLL_US = 1000, ROLE_POLL_US = 5000, PAUSE_WRITES_MS = 60000 };

static const char *name_of(const struct fault_target *target) {
    return target && target->name ? target->name : "the server";
}

const struct fault_target *find_server(const struct fault_target *target, int server) {
    for (const struct fault_target *each = target->other; each; each = each->other)
        if (each->server == server) return each;
    return NULL;
}

bool replicated_option(const struct fault_target *target, bool *replicated, struct fault_report *report) {
    int choice = fault_option_choice(target, "replicated", FAULT_CHOICES("no", "yes"), report);
    *replicated = choice == 1;
    return choice >= 0;
}

void disconnect_clients(const char *socket) {
    admin_command(socket, NULL, NULL, "CLIENT KILL TYPE normal");
    admin_command(socket, NULL, NULL, "CLIENT KILL TYPE pubsub");
}

/* --- roles --- */

bool role_is(const char *socket, const char *role, struct fault_report *report) {
    struct admin_reply reply;
    size_t length = strlen(role);
    if (!admin_command_ok(socket, &reply, report, "ROLE")) return false;
    if (strncmp(reply.text, role, length) == 0 && reply.text[length] == '\n') return true;
    return fault_fail(report, "ROLE says %.*s, not %s", (int)strcspn(reply.text, "\n"), reply.text, role);
}

static bool is_connected(const char *socket) {
    struct admin_reply reply;
    return admin_command_ok(socket, &reply, NULL, "ROLE") && strstr(reply.text, "\nconnected\n");
}

bool role_await(const char *socket, const char *role, int limit_ms, struct fault_report *report) {
    int64_t until_ns = hang_limit_deadline_ns(limit_ms);
    do
        if (role_is(socket, role, report) && (strcmp(role, "slave") != 0 || is_connected(socket))) {
            report->text[0] = '\0';
            return true;
        }
    while (hang_limit_pause(until_ns, ROLE_POLL_US));
    return false;
}

/* --- replicas --- */

/* The replication id: a replica has its master's. */
static bool replication_id(const char *socket, char *id, size_t size, struct fault_report *report) {
    if (!admin_info_read(socket, "replication", "master_replid", id, size, report)) return false;
    return id[0] || fault_fail(report, "INFO names no master_replid");
}

bool replication_find(struct replication *replication, const struct fault_target *target, bool first_only,
                      struct fault_report *report) {
    char id[64], other[64];
    if (!role_is(target->socket, "master", report)) return false;
    if (!replication_id(target->socket, id, sizeof id, report)) return false;
    replication->count = 0;
    for (const struct fault_target *each = target->other; each; each = first_only ? NULL : each->other) {
        if (replication->count == REPLICATION_REPLICAS || !role_is(each->socket, "slave", NULL)) continue;
        if (!replication_id(each->socket, other, sizeof other, NULL) || strcmp(id, other) != 0) continue;
        replication->replicas[replication->count++] = each->server;
    }
    return replication->count > 0 || fault_fail(report, "no replica follows %s", name_of(target));
}

/* --- the last write --- */

static bool offset_of(const char *socket, const char *which, long long *offset, struct fault_report *report) {
    char value[32];
    if (!admin_info_read(socket, "replication", which, value, sizeof value, report)) return false;
    *offset = strtoll(value, NULL, 10);
    return value[0] || fault_fail(report, "INFO names no %s", which);
}

/* Waits until every replica has applied what the target has written up to now. */
static bool catch_up(const struct replication *replication, const struct fault_target *target,
                     struct fault_report *report) {
    long long written, applied = 0;
    if (!offset_of(target->socket, "master_repl_offset", &written, report)) return false;
    for (int each = 0; each < replication->count; each++) {
        const struct fault_target *replica = find_server(target, replication->replicas[each]);
        int64_t until_ns = hang_limit_deadline_ns(CATCH_UP_LIMIT_MS);
        do
            if (!offset_of(replica->socket, "slave_repl_offset", &applied, report)) return false;
        while (applied < written && hang_limit_pause(until_ns, CATCH_UP_POLL_US));
        if (applied < written)
            return fault_fail(report, "%s stays %lld bytes behind %s", name_of(replica), written - applied,
                              name_of(target));
    }
    return true;
}

bool replication_drain(struct replication *replication, const struct fault_target *target,
                       struct fault_report *report) {
    const struct probe_key key = fault_probe_key(target);
    if (!admin_command_ok(target->socket, NULL, report, "SET %s %s", key.text, name_of(target))) return false;
    if (!admin_command_ok(target->socket, NULL, report, "CLIENT PAUSE %d WRITE", PAUSE_WRITES_MS)) return false;
    replication->paused = true;
    return catch_up(replication, target, report);
}

bool replication_shows(const struct replication *replication, const struct fault_target *target, const char *socket,
                       struct fault_report *report) {
    struct admin_reply reply;
    const struct probe_key key = fault_probe_key(target);
    if (!admin_command_ok(socket, &reply, report, "EXISTS %s", key.text)) return false;
    bool there = reply.number == 1;
    snprintf(report->text, sizeof report->text, "what was written to %s last is %s", name_of(target),
             there ? "there" : "missing");
    return there != replication->cut;
}

/* --- the cut --- */

/* A replica's end of the connection to its master, "address:port". */
static bool replica_address(const char *socket, char *end, size_t size, struct fault_report *report) {
    struct admin_reply reply;
    if (!admin_command_ok(socket, &reply, report, "CLIENT LIST TYPE master")) return false;
    const char *found = strstr(reply.text, " laddr=");
    if (!found) return fault_fail(report, "the replica has no connection to its master");
    found += strlen(" laddr=");
    snprintf(end, size, "%.*s", (int)strcspn(found, " \n"), found);
    return true;
}

/* The master refuses new replicas, and then disconnects those that it has. */
static bool disconnect_replicas(const struct replication *replication, const struct fault_target *target,
                                struct fault_report *report) {
    char end[64];
    if (!admin_command_ok(target->socket, NULL, report, "ACL SETUSER default -psync -sync")) return false;
    if (target->proxy || replication->count > 1)
        return admin_command_ok(target->socket, NULL, report, "CLIENT KILL TYPE replica");
    const struct fault_target *replica = find_server(target, replication->replicas[0]);
    return replica_address(replica->socket, end, sizeof end, report) &&
           admin_command_ok(target->socket, NULL, report, "CLIENT KILL ADDR %s", end);
}

/* The link of the only replica as a target of its own, with the rule that it may have in its state. */
static struct fault_target link_of(const struct replication *replication, const struct fault_target *target,
                                   char name[REPLICATION_NAME]) {
    struct fault_target link = {
        .fault = target->fault, .task = -1, .server = -1, .links = name, .proxy = target->proxy};
    link.driver = target->driver;
    snprintf(name, REPLICATION_NAME, "%s>%s", name_of(find_server(target, replication->replicas[0])), name_of(target));
    memcpy(link.state, replication->rule, sizeof replication->rule);
    return link;
}

static bool replication_swallow(struct replication *replication, const struct fault_target *target,
                                struct fault_report *report) {
    char name[REPLICATION_NAME];
    struct proxy_rule_words words = {0};
    struct fault_target link = link_of(replication, target, name);
    proxy_rule_add_word(&words, "black-hole");
    bool added = proxy_rule_inject(&link, NULL, "to-client", &words, report);
    memcpy(replication->rule, link.state, sizeof replication->rule);
    return added;
}

/* The first message that is swallowed appends a record to the history: it must not come later, when others append. */
static bool await_swallowed(const struct replication *replication, const struct fault_target *target,
                            struct fault_report *report) {
    char name[REPLICATION_NAME];
    struct fault_target link = link_of(replication, target, name);
    int64_t until_ns = hang_limit_deadline_ns(CATCH_UP_LIMIT_MS);
    do
        if (proxy_rule_prove(&link, "swallowed", report)) return true;
    while (hang_limit_pause(until_ns, CATCH_UP_POLL_US));
    return false;
}

bool replication_cut(struct replication *replication, const struct fault_target *target, bool by_proxy,
                     struct fault_report *report) {
    bool swallows = by_proxy && target->proxy;
    const struct probe_key key = fault_probe_key(target);
    if (!admin_command_ok(target->socket, NULL, report, "DEL %s", key.text)) return false;
    if (!catch_up(replication, target, report)) return false;
    replication->cut = true;
    if (swallows ? !replication_swallow(replication, target, report)
                 : !disconnect_replicas(replication, target, report))
        return false;
    for (int each = 0; each < replication->count; each++) target->driver->replica_lost(replication->replicas[each]);
    if (!admin_command_ok(target->socket, NULL, report, "SET %s %s", key.text, name_of(target))) return false;
    return !swallows || await_swallowed(replication, target, report);
}

void replication_resume(struct replication *replication, const struct fault_target *target) {
    if (replication->paused) admin_command(target->socket, NULL, NULL, "CLIENT UNPAUSE");
    replication->paused = false;
}

void replication_mend(struct replication *replication, const struct fault_target *target) {
    char name[REPLICATION_NAME];
    if (replication->rule[0]) {
        struct fault_target link = link_of(replication, target, name);
        proxy_rule_heal(&link, NULL);
    } else if (replication->cut) {
        admin_command(target->socket, NULL, NULL, "ACL SETUSER default +psync +sync");
    }
    replication->cut = false;
    replication->rule[0] = '\0';
    replication_resume(replication, target);
}
