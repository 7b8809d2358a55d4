/* The proxy: carries every link of a trial - client and server, client and store, master and replica - and delays,
 * holds, loses, repeats or cuts messages by rules, message by message where the link speaks RESP.
 *
 *   proxy --history FILE --page FILE --actor N --control SOCKET
 *
 * It is controlled through its control port (control.c). Every rule that fires is recorded in the history before its
 * effect can be observed. */
#include <stdio.h>

#include "faults/proxy/control.h"
#include "faults/proxy/link.h"
#include "faults/proxy/rule_set.h"
#include "harness/process/arguments.h"
#include "harness/process/descriptor_limit.h"
#include "harness/process/zygote_service.h"

int main(int argc, char **argv) {
    const char *history = NULL, *page = NULL, *path = NULL;
    int64_t actor = -1;
    const struct argument table[] = {TEXT_ARGUMENT("history", &history),
                                     TEXT_ARGUMENT("page", &page),
                                     TEXT_ARGUMENT("control", &path),
                                     NUMBER_BETWEEN("actor", &actor, 0, UINT32_MAX),
                                     {0}};
    struct argument_refused refused;
    struct history_error error = {.text = "usage: proxy --history F --page F --actor N --control S"};
    struct address_error reason;
    struct proxy proxy = {0};
    zygote_begin(&argc, &argv);
    if (arguments_read(argc, argv, table, &refused) && history && page && path && actor >= 0)
        actor_open(&proxy.actor, (uint32_t)actor, history, page, &error);
    if (!proxy.actor.page) {
        fprintf(stderr, "proxy: %s\n", error.text);
        return 2;
    }
    descriptor_limit_raise(); /* a connection takes two */
    proxy_open(&proxy);
    struct control *control = control_open(&proxy, path, &reason);
    if (control) {
        ev_run(proxy.loop, 0);
        control_close(control);
    } else {
        fprintf(stderr, "proxy: %s\n", reason.text);
    }
    while (proxy.links) link_remove(proxy.links);
    rule_set_close(&proxy);
    proxy_close(&proxy);
    return control ? 0 : 2;
}
