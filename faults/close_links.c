/* close-links: the connections of a client are closed in the middle, as an idle limit on the way does.
 *
 * Unlike kill-connections it asks no server, so it works with any kind. Nothing is lost that was under way: what is in
 * flight arrives first. */
#include <stdio.h>

#include "faults/ask.h"

extern const struct fault FAULT_CLOSE_LINKS;

enum { LINKS_NAME = 96 };

static const struct fault_word OPTIONS[] = {
    {"servers", "redis-*", "of a client: the servers to which its connections are closed"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    char links[LINKS_NAME];
    struct answer answer;
    const struct fault_means *means = target->means;
    const char *servers = fault_text(&FAULT_CLOSE_LINKS, target, "servers");
    if (!target->proxy) return fault_fail(report, "the links of this trial do not lead through the proxy");
    if (target->strand >= 0) snprintf(links, sizeof links, "%s>%s", target->name, servers);
    else snprintf(links, sizeof links, "%s", target->links);
    means->unreliable(means->conductor);
    if (!means->settle(means->conductor)) return fault_fail(report, "not every server answers");
    if (!ask_good(target->proxy, &answer, report, "LINK CLOSE %s", links)) return false;
    *(long long *)(void *)target->state = answer.number;
    return means->settle(means->conductor) || fault_fail(report, "not every server answers");
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    long long closed = *(long long *)(void *)target->state;
    if (closed == 0) return fault_fail(report, "there was no such connection to close");
    return snprintf(report->text, sizeof report->text, "%lld connections were closed", closed) > 0;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    (void)target, (void)report;
    return true; /* whoever needs a connection makes one */
}

const struct fault FAULT_CLOSE_LINKS = {
    .name = "close-links",
    .summary = "the connections of a client to its servers are closed on the way, both sides see it",
    .proof = "how many connections the proxy closed",
    .explanation =
        "What an idle limit of a load balancer, a NAT that forgets or a restarted pooler does: the server sees the end of\n"
        "the connection at once, the client when it next looks. What was under way arrives first. New connections are\n"
        "accepted at once, so healing does nothing. For a server that closes by itself see kill-connections.",
    .source = "PostgreSQL documentation, 13.3.5 (session locks end with the session); PgBouncer, server_idle_timeout",
    .target = "client",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
