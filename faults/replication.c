#include "faults/replication.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "faults/ask.h"
#include "faults/rule_fault.h"

enum { CATCH_UP_LIMIT_MS = 2000, PAUSE_WRITES_MS = 60000 };

void pause_ms(int duration_ms) {
    nanosleep(&(struct timespec){.tv_sec = duration_ms / 1000, .tv_nsec = duration_ms % 1000 * 1000000L}, NULL);
}

int64_t real_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000 + now.tv_nsec / 1000000;
}

static const char *name_of(const struct fault_target *target) {
    return target && target->name ? target->name : "the server";
}

const struct fault_target *taking_part(const struct fault_target *target, int server) {
    for (const struct fault_target *each = target->other; each; each = each->other)
        if (each->server == server) return each;
    return NULL;
}

bool replicated_option(const struct fault *fault, const struct fault_target *target, bool *replicated,
                       struct fault_report *report) {
    const char *said = fault_text(fault, target, "replicated");
    *replicated = strcmp(said, "yes") == 0;
    if (*replicated || strcmp(said, "no") == 0) return true;
    return fault_fail(report, "%s: replicated=%.40s is neither yes nor no", fault->name, said);
}

/* --- roles --- */

bool role_is(const char *socket, const char *role, struct fault_report *report) {
    struct answer answer;
    size_t length = strlen(role);
    if (!ask_good(socket, &answer, report, "ROLE")) return false;
    if (strncmp(answer.text, role, length) == 0 && answer.text[length] == '\n') return true;
    return fault_fail(report, "ROLE says %.*s, not %s", (int)strcspn(answer.text, "\n"), answer.text, role);
}

static bool is_connected(const char *socket) {
    struct answer answer;
    struct fault_report ignored;
    return ask_good(socket, &answer, &ignored, "ROLE") && strstr(answer.text, "\nconnected\n");
}

bool role_await(const char *socket, const char *role, int limit_ms, struct fault_report *report) {
    for (int64_t until_ms = real_ms() + limit_ms; real_ms() < until_ms;) {
        if (role_is(socket, role, report) && (strcmp(role, "slave") != 0 || is_connected(socket)))
            return report->text[0] = '\0', true;
        pause_ms(5);
    }
    return false;
}

/* --- who follows --- */

/* The name of the history of writes that a server has: a replica's is its master's. */
static bool stream_of(const char *socket, char *id, size_t size, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(socket, &answer, report, "INFO replication")) return false;
    return answer_line(&answer, "master_replid", id, size) || fault_fail(report, "INFO names no master_replid");
}

bool replication_find(struct replication *replication, const struct fault_target *target, bool first_only,
                      struct fault_report *report) {
    char stream[64], other[64];
    if (!role_is(target->socket, "master", report)) return false;
    if (!stream_of(target->socket, stream, sizeof stream, report)) return false;
    replication->count = 0;
    for (const struct fault_target *each = target->other; each; each = first_only ? NULL : each->other) {
        struct fault_report ignored;
        if (replication->count == REPLICATION_REPLICAS || !role_is(each->socket, "slave", &ignored)) continue;
        if (!stream_of(each->socket, other, sizeof other, &ignored) || strcmp(stream, other) != 0) continue;
        replication->replicas[replication->count++] = each->server;
    }
    return replication->count > 0 || fault_fail(report, "no replica follows %s", name_of(target));
}

/* --- the last write --- */

static bool offset_of(const char *socket, const char *which, long long *offset, struct fault_report *report) {
    struct answer answer;
    char value[32];
    if (!ask_good(socket, &answer, report, "INFO replication")) return false;
    if (!answer_line(&answer, which, value, sizeof value)) return fault_fail(report, "INFO names no %s", which);
    *offset = strtoll(value, NULL, 10);
    return true;
}

/* Every replica has carried out all that the target had told it up to now. */
static bool catch_up(const struct replication *replication, const struct fault_target *target,
                     struct fault_report *report) {
    long long told, done = 0;
    if (!offset_of(target->socket, "master_repl_offset", &told, report)) return false;
    for (int each = 0; each < replication->count; each++) {
        const struct fault_target *replica = taking_part(target, replication->replicas[each]);
        for (int64_t until_ms = real_ms() + CATCH_UP_LIMIT_MS; real_ms() < until_ms;) {
            if (!offset_of(replica->socket, "slave_repl_offset", &done, report)) return false;
            if (done >= told) break;
            pause_ms(1);
        }
        if (done < told)
            return fault_fail(report, "%s stays %lld bytes behind %s", name_of(replica), told - done, name_of(target));
    }
    return true;
}

bool replication_drain(struct replication *replication, const struct fault_target *target,
                       struct fault_report *report) {
    struct answer answer;
    char key[PROBE_KEY];
    probe_key(target, "failover", key);
    if (!ask_good(target->socket, &answer, report, "SET %s %s", key, name_of(target))) return false;
    if (!ask_good(target->socket, &answer, report, "CLIENT PAUSE %d WRITE", PAUSE_WRITES_MS)) return false;
    replication->paused = true;
    return catch_up(replication, target, report);
}

bool replication_shows(const struct replication *replication, const struct fault_target *target, const char *socket,
                       struct fault_report *report) {
    struct answer answer;
    char key[PROBE_KEY];
    probe_key(target, "failover", key);
    if (!ask_good(socket, &answer, report, "EXISTS %s", key)) return false;
    bool there = answer.number == 1;
    snprintf(report->text, sizeof report->text, "what was written to %s last is %s", name_of(target),
             there ? "there" : "missing");
    return there != replication->cut;
}

/* --- the cut --- */

/* A replica's own end of the connection to its master, "address:port". */
static bool own_end(const char *socket, char *end, size_t size, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(socket, &answer, report, "CLIENT LIST TYPE master")) return false;
    const char *found = strstr(answer.text, " laddr=");
    if (!found) return fault_fail(report, "the replica has no connection to its master");
    found += strlen(" laddr=");
    snprintf(end, size, "%.*s", (int)strcspn(found, " \n"), found);
    return true;
}

/* The master refuses whoever wants to follow it, and then throws out who does. */
static bool throw_out(const struct replication *replication, const struct fault_target *target,
                      struct fault_report *report) {
    struct answer answer;
    char end[64];
    if (!ask_good(target->socket, &answer, report, "ACL SETUSER default -psync -sync")) return false;
    if (target->proxy || replication->count > 1)
        return ask_good(target->socket, &answer, report, "CLIENT KILL TYPE replica");
    const struct fault_target *replica = taking_part(target, replication->replicas[0]);
    return own_end(replica->socket, end, sizeof end, report) &&
           ask_good(target->socket, &answer, report, "CLIENT KILL ADDR %s", end);
}

/* The link of the only replica as a target of its own, with the rule that it may have. */
static struct fault_target link_of(const struct replication *replication, const struct fault_target *target,
                                   char name[REPLICATION_NAME]) {
    struct fault_target link = {.strand = -1, .server = -1, .links = name, .proxy = target->proxy};
    link.means = target->means;
    snprintf(name, REPLICATION_NAME, "%s>%s", name_of(taking_part(target, replication->replicas[0])), name_of(target));
    memcpy(link.state, replication->rule, sizeof replication->rule);
    return link;
}

static bool swallow(struct replication *replication, const struct fault_target *target, const struct fault *fault,
                    struct fault_report *report) {
    char name[REPLICATION_NAME];
    struct rule_words words = {0};
    struct fault_target link = link_of(replication, target, name);
    rule_word(&words, "black-hole");
    bool ruled = rule_inject(fault, &link, NULL, "to-client", &words, report);
    memcpy(replication->rule, link.state, sizeof replication->rule);
    return ruled;
}

/* The first message that is swallowed is a record of the history: it must not come later, when others write there. */
static bool await_swallowed(const struct replication *replication, const struct fault_target *target,
                            struct fault_report *report) {
    char name[REPLICATION_NAME];
    struct fault_target link = link_of(replication, target, name);
    for (int64_t until_ms = real_ms() + CATCH_UP_LIMIT_MS; real_ms() < until_ms;) {
        if (rule_prove(&link, "swallowed", report)) return true;
        pause_ms(1);
    }
    return false;
}

bool replication_cut(struct replication *replication, const struct fault_target *target, const struct fault *rule,
                     struct fault_report *report) {
    struct answer answer;
    char key[PROBE_KEY];
    bool swallows = rule && target->proxy;
    probe_key(target, "failover", key);
    if (!ask_good(target->socket, &answer, report, "DEL %s", key)) return false;
    if (!catch_up(replication, target, report)) return false;
    replication->cut = true;
    if (swallows ? !swallow(replication, target, rule, report) : !throw_out(replication, target, report)) return false;
    for (int each = 0; each < replication->count && target->means && target->means->replica_lost; each++)
        target->means->replica_lost(replication->replicas[each]);
    if (!ask_good(target->socket, &answer, report, "SET %s %s", key, name_of(target))) return false;
    return !swallows || await_swallowed(replication, target, report);
}

void replication_resume(struct replication *replication, const struct fault_target *target) {
    struct fault_report ignored;
    struct answer answer;
    if (replication->paused) ask(target->socket, &answer, &ignored, "CLIENT UNPAUSE");
    replication->paused = false;
}

void replication_mend(struct replication *replication, const struct fault_target *target) {
    struct fault_report ignored;
    struct answer answer;
    char name[REPLICATION_NAME];
    if (replication->rule[0]) {
        struct fault_target link = link_of(replication, target, name);
        rule_heal(&link, &ignored);
    } else if (replication->cut) {
        ask(target->socket, &answer, &ignored, "ACL SETUSER default +psync +sync");
    }
    replication->cut = false;
    replication->rule[0] = '\0';
    replication_resume(replication, target);
}
