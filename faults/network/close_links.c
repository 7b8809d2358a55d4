/* close-links: the proxy closes the connections of a client, as an idle limit in the network does.
 *
 * Unlike kill-connections it sends no command to a server, so it works with any kind. Nothing is lost: what is in
 * flight arrives first. */
#include <stdio.h>

#include "faults/common/admin_command.h"
#include "faults/common/proxy_rule.h"

enum { LINKS_NAME = 96 };

static bool close_links_inject(struct fault_target *target, struct fault_report *report) {
    char links[LINKS_NAME];
    struct admin_reply reply;
    const struct fault_driver *driver = target->driver;
    long long *closed = (void *)target->state;
    if (!target->proxy) return fault_fail(report, "the links of this trial do not lead through the proxy");
    proxy_rule_links(target, fault_option_text(target, "servers"), links, sizeof links);
    driver->unreliable(driver->scheduler);
    if (!driver->settle(driver->scheduler)) return fault_fail(report, "not every server answers");
    if (!admin_command_ok(target->proxy, &reply, report, "LINK CLOSE %s", links)) return false;
    *closed = reply.number;
    return driver->settle(driver->scheduler) || fault_fail(report, "not every server answers");
}

static bool close_links_prove(struct fault_target *target, struct fault_report *report) {
    const long long *closed = (void *)target->state;
    if (*closed == 0) return fault_fail(report, "there was no such connection to close");
    return snprintf(report->text, sizeof report->text, "%lld connections were closed", *closed) > 0;
}

const struct fault FAULT_CLOSE_LINKS = {
    .row = &FAULT_ROWS[FAULT_ID_CLOSE_LINKS],
    .explanation =
        "As an idle limit of a load balancer, a NAT that loses its state or a restarted pooler does: the server sees\n"
        "the end of the connection at once, the client when it next uses it. What is in flight arrives first. New\n"
        "connections are accepted at once, so healing does nothing. For a server that closes connections itself see\n"
        "kill-connections.",
    .target = "client",
    .options = FAULT_OPTIONS({"servers", "redis-*", "of a client: the servers to which its connections are closed"}),
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = close_links_inject,
    .prove = close_links_prove,
};
