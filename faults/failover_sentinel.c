/* failover-sentinel: the master is lost, and real sentinels find that out, elect one of theirs and promote a replica.
 *
 * Sentinels wait long for a silent master as long as no fault is meant, so that a busy machine makes none; inject
 * makes them impatient, heal patient again. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/election.h"

extern const struct fault FAULT_FAILOVER_SENTINEL;

enum { MASTER_NAME = 64 };

static struct election *election_of(struct fault_target *target) {
    return (void *)target->state;
}

/* The next of those who take part, from `each` on, that is a sentinel; NULL: no more. */
static const struct fault_target *next_sentinel(const struct fault_target *each) {
    struct fault_report ignored;
    while (each && !role_is(each->socket, "sentinel", &ignored)) each = each->other;
    return each;
}

/* By which name sentinels know the one master that they watch: that of who was it first. */
static bool watched(const struct fault_target *target, char *name, size_t size, struct fault_report *report) {
    const struct fault_target *sentinel = next_sentinel(target->other);
    struct answer answer; /* field, value, field, ... in lines; the first is the name */
    if (!sentinel) return fault_fail(report, "no sentinel watches %s", target->name);
    if (!ask_good(sentinel->socket, &answer, report, "SENTINEL MASTERS")) return false;
    if (strncmp(answer.text, "name\n", 5) != 0) return fault_fail(report, "%s watches no master", sentinel->name);
    snprintf(name, size, "%.*s", (int)strcspn(answer.text + 5, "\n"), answer.text + 5);
    return true;
}

/* How long this sentinel waits for a silent master; 0: it does not know the master. */
static long long patience_of(const struct fault_target *sentinel, const char *master, struct fault_report *report) {
    static const char FIELD[] = "\ndown-after-milliseconds\n";
    struct answer answer;
    if (!ask_good(sentinel->socket, &answer, report, "SENTINEL MASTER %s", master)) return 0;
    const char *found = strstr(answer.text, FIELD);
    return found ? strtoll(found + strlen(FIELD), NULL, 10) : 0;
}

/* How many sentinels were told; they keep it in their files. */
static int set_patience(const struct fault_target *target, long long patience_ms, struct fault_report *report) {
    struct answer answer;
    char name[MASTER_NAME];
    int told = 0;
    if (!watched(target, name, sizeof name, report)) return 0;
    for (const struct fault_target *each = next_sentinel(target->other); each; each = next_sentinel(each->other))
        told +=
            ask_good(each->socket, &answer, report, "SENTINEL SET %s down-after-milliseconds %lld", name, patience_ms);
    return told;
}

static redisContext *subscribe(const char *socket, struct fault_report *report) {
    struct timeval limit = {.tv_sec = ELECTION_LIMIT_MS / 1000};
    redisContext *link = redisConnectUnixWithTimeout(socket, limit);
    if (link && !link->err) redisSetTimeout(link, limit);
    redisReply *confirmed = link && !link->err ? redisCommand(link, "SUBSCRIBE +switch-master") : NULL;
    if (confirmed) return freeReplyObject(confirmed), link;
    fault_fail(report, "no subscription at a sentinel: %.100s", link ? link->errstr : "out of memory");
    if (link) redisFree(link);
    return NULL;
}

/* Waits for the message about this master. */
static bool await_switch(redisContext *link, const char *master, struct fault_report *report) {
    size_t length = strlen(master);
    bool seen = false;
    void *raw = NULL;
    while (!seen && redisGetReply(link, &raw) == REDIS_OK) {
        redisReply *push = raw;
        const char *text = push->elements == 3 && push->element[2]->str ? push->element[2]->str : "";
        seen = strncmp(text, master, length) == 0 && text[length] == ' ';
        freeReplyObject(push);
    }
    return seen || fault_fail(report, "no +switch-master for %s within %d ms", master, ELECTION_LIMIT_MS);
}

static bool prepare(struct fault_target *target, struct fault_report *report) {
    if (!next_sentinel(target->other)) return fault_fail(report, "no sentinel watches %s", target->name);
    return election_prepare(&FAULT_FAILOVER_SENTINEL, target, report);
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_target *sentinel = next_sentinel(target->other);
    int64_t patience_ms;
    char name[MASTER_NAME];
    if (!watched(target, name, sizeof name, report)) return false;
    if (!fault_number(&FAULT_FAILOVER_SENTINEL, target, "down-after-ms", 100, 60000, &patience_ms, report))
        return false;
    election_of(target)->patience_ms = patience_of(sentinel, name, report);
    redisContext *link = subscribe(sentinel->socket, report);
    if (!link) return false;
    bool switched = election_begin(&FAULT_FAILOVER_SENTINEL, target, report) &&
                    set_patience(target, patience_ms, report) > 0 && await_switch(link, name, report) &&
                    election_follow(target, report);
    redisFree(link);
    return switched;
}

/* Every sentinel names the new master's address, not only the one that told first. */
static bool prove(struct fault_target *target, struct fault_report *report) {
    struct fault_report seen;
    struct answer answer, named;
    char name[MASTER_NAME];
    if (!watched(target, name, sizeof name, report)) return false;
    if (!election_shows(target, &seen)) return *report = seen, false;
    int agreed = 0, asked = 0;
    for (const struct fault_target *each = next_sentinel(target->other); each; each = next_sentinel(each->other)) {
        if (!ask_good(each->socket, &answer, report, "SENTINEL GET-MASTER-ADDR-BY-NAME %s", name)) return false;
        if (asked++ == 0) named = answer;
        agreed += strcmp(answer.text, named.text) == 0;
    }
    snprintf(report->text, sizeof report->text, "+switch-master was seen, %d of %d sentinels agree; %.120s", agreed,
             asked, seen.text);
    return agreed >= 1;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    long long patience_ms = election_of(target)->patience_ms;
    bool well = election_end(&FAULT_FAILOVER_SENTINEL, target, report);
    struct fault_report ignored;
    if (patience_ms > 0) set_patience(target, patience_ms, &ignored);
    return well;
}

static const struct fault_word OPTIONS[] = {
    {"down-after-ms", "500", "so many ms without an answer make a sentinel take the master for down"},
    ELECTION_WORDS,
};

const struct fault FAULT_FAILOVER_SENTINEL = {
    .name = "failover-sentinel",
    .summary = "lose the master under real sentinels, which promote a replica",
    .proof = "+switch-master at a sentinel; ROLE of the new master; a key written last is there or missing",
    .explanation =
        "Three real sentinels (quorum 2) watch a master and its replicas; the master is killed (its data is in memory\n"
        "only) or stopped, they take it for down, elect one of theirs and promote a replica. Clients are led to it as soon\n"
        "as +switch-master is published, as clients that listen to it are. Heal starts the old master again (or lets it go\n"
        "on); the sentinels make it a replica. replicated=no has the master refuse its replicas before, from `prepare` on.\n"
        "It does not model a cut between the sentinels. Without the proxy a client's open connection to a stopped master\n"
        "stays until a command has had no answer. Real time only: an election is made of timeouts.",
    .source = "Redis documentation of Sentinel, \"Sentinel and consistency\"; issues redbeat 163, infrahub 9450",
    .target = "server",
    .options = OPTIONS,
    .times = FAULT_REAL,
    .prepare = prepare,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
