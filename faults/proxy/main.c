/* The proxy: stands on every link of a trial - client and server, client and store, master and replica - and delays,
 * holds, loses, repeats or cuts what it is told to, message by message where the link speaks RESP.
 *
 *   proxy --history FILE --stage FILE --actor N --control SOCKET [--seed N]
 *
 * It is steered through its control port (commands.c). Every rule that fires is recorded in the history before anybody
 * can notice what it did. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "faults/proxy/control.h"
#include "faults/proxy/link.h"
#include "faults/proxy/rules.h"

struct arguments {
    const char *history, *stage, *control, *actor, *seed;
};

static bool parse(int argc, char **argv, struct arguments *arguments) {
    const struct option options[] = {
        {"history", required_argument, NULL, 'h'}, {"stage", required_argument, NULL, 's'},
        {"actor", required_argument, NULL, 'a'},   {"control", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 'S'},    {0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'h': arguments->history = optarg; break;
        case 's': arguments->stage = optarg; break;
        case 'a': arguments->actor = optarg; break;
        case 'c': arguments->control = optarg; break;
        case 'S': arguments->seed = optarg; break;
        default: return false;
        }
    }
    return arguments->history && arguments->stage && arguments->actor && arguments->control && optind == argc;
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

static bool open_files(struct proxy *proxy, const struct arguments *arguments, struct history_error *error) {
    uint64_t actor;
    if (!parse_number(arguments->actor, UINT32_MAX, &actor) ||
        (arguments->seed && !parse_number(arguments->seed, UINT64_MAX, &proxy->seed))) {
        snprintf(error->text, sizeof error->text, "--actor and --seed want numbers");
        return false;
    }
    proxy->actor.id = (uint32_t)actor;
    proxy->actor.history = history_open(arguments->history, error);
    proxy->actor.stage = proxy->actor.history ? stage_open(arguments->stage, error) : NULL;
    if (!proxy->actor.stage) return false;
    if (!arguments->seed) proxy->seed = proxy->actor.stage->seed;
    return true;
}

static void proxy_close(struct proxy *proxy) {
    while (proxy->links) link_remove(proxy->links);
    rules_close(proxy);
    agenda_close(&proxy->agenda);
    free(proxy->buffer);
    ev_loop_destroy(proxy->loop);
    stage_close(proxy->actor.stage);
    history_close(proxy->actor.history);
}

int main(int argc, char **argv) {
    struct arguments arguments = {0};
    struct history_error error = {.text = "usage: proxy --history F --stage F --actor N --control S [--seed N]"};
    struct rule_error reason;
    struct proxy proxy = {0};
    if (!parse(argc, argv, &arguments) || !open_files(&proxy, &arguments, &error))
        return fprintf(stderr, "proxy: %s\n", error.text), 2;
    raise_descriptor_limit();
    proxy.buffer = malloc(MESSAGE_HEAD + READ_SIZE);
    proxy.loop = ev_default_loop(EVFLAG_AUTO);
    if (!proxy.buffer || !proxy.loop) abort();
    agenda_open(&proxy.agenda, proxy.loop, proxy.actor.stage);
    struct control *control = control_open(&proxy, arguments.control, &reason);
    if (control) {
        ev_run(proxy.loop, 0);
        control_close(control);
    } else {
        fprintf(stderr, "proxy: %s\n", reason.text);
    }
    proxy_close(&proxy);
    return control ? 0 : 2;
}
