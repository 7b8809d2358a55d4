/* The proxy: carries every link of a trial - client and server, client and store, master and replica - and delays,
 * holds, loses, repeats or cuts messages by rules, message by message where the link speaks RESP.
 *
 *   proxy --history FILE --page FILE --actor N --control SOCKET [--seed N]
 *
 * It is controlled through its control port (commands.c). Every rule that fires is recorded in the history before its
 * effect can be observed. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "faults/proxy/control.h"
#include "faults/proxy/link.h"
#include "faults/proxy/rule_set.h"
#include "harness/process/zygote_service.h"

struct proxy_options {
    const char *history, *page, *control, *actor, *seed;
};

static bool proxy_main_parse_options(int argc, char **argv, struct proxy_options *given) {
    const struct option options[] = {
        {"history", required_argument, NULL, 'h'}, {"page", required_argument, NULL, 's'},
        {"actor", required_argument, NULL, 'a'},   {"control", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 'S'},    {0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'h': given->history = optarg; break;
        case 's': given->page = optarg; break;
        case 'a': given->actor = optarg; break;
        case 'c': given->control = optarg; break;
        case 'S': given->seed = optarg; break;
        default: return false;
        }
    }
    return given->history && given->page && given->actor && given->control && optind == argc;
}

static bool parse_number(const char *text, uint64_t most, uint64_t *number) {
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !errno && end != text && *end == '\0' && text[0] != '-' && *number <= most;
}

/* A connection takes two descriptors. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static bool open_files(struct proxy *proxy, const struct proxy_options *given, struct history_error *error) {
    uint64_t actor;
    if (!parse_number(given->actor, UINT32_MAX, &actor) ||
        (given->seed && !parse_number(given->seed, UINT64_MAX, &proxy->seed))) {
        snprintf(error->text, sizeof error->text, "--actor and --seed need numbers");
        return false;
    }
    proxy->actor.id = (uint32_t)actor;
    proxy->actor.history = history_open(given->history, error);
    proxy->actor.page = proxy->actor.history ? shared_page_open(given->page, error) : NULL;
    if (!proxy->actor.page) return false;
    if (!given->seed) proxy->seed = proxy->actor.page->seed;
    return true;
}

static void proxy_close(struct proxy *proxy) {
    while (proxy->links) link_remove(proxy->links);
    rule_set_close(proxy);
    timer_heap_close(&proxy->timers);
    free(proxy->buffer);
    ev_loop_destroy(proxy->loop);
    shared_page_close(proxy->actor.page);
    history_close(proxy->actor.history);
}

int main(int argc, char **argv) {
    struct proxy_options given = {0};
    struct history_error error = {.text = "usage: proxy --history F --page F --actor N --control S [--seed N]"};
    struct address_error reason;
    struct proxy proxy = {0};
    zygote_begin(&argc, &argv);
    if (!proxy_main_parse_options(argc, argv, &given) || !open_files(&proxy, &given, &error)) {
        fprintf(stderr, "proxy: %s\n", error.text);
        return 2;
    }
    raise_descriptor_limit();
    proxy.buffer = malloc(MESSAGE_HEAD + READ_SIZE);
    proxy.loop = ev_default_loop(EVFLAG_AUTO);
    if (!proxy.buffer || !proxy.loop) abort();
    timer_heap_open(&proxy.timers, proxy.loop, proxy.actor.page);
    struct control *control = control_open(&proxy, given.control, &reason);
    if (control) {
        ev_run(proxy.loop, 0);
        control_close(control);
    } else {
        fprintf(stderr, "proxy: %s\n", reason.text);
    }
    proxy_close(&proxy);
    return control ? 0 : 2;
}
