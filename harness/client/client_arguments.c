#include "harness/client/client_arguments.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/client/plugin.h"

static bool argument_number(const char *text, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

/* Decodes pairs of hexadecimal digits into *bytes, which the caller frees: a resource's name may hold any byte. */
static bool unhex(const char *text, char **bytes, size_t *length) {
    size_t digits = strlen(text);
    free(*bytes);
    *bytes = malloc(digits / 2 + 1);
    *length = digits / 2;
    if (!*bytes) abort();
    for (size_t each = 0; each < *length; each++) {
        unsigned byte;
        if (sscanf(text + 2 * each, "%2x", &byte) != 1) return false;
        (*bytes)[each] = (char)byte;
    }
    return digits % 2 == 0;
}

bool client_arguments_parse(int argc, char **argv, struct client_arguments *arguments) {
    const struct option options[] = {
        {"history", required_argument, NULL, 'h'},       {"page", required_argument, NULL, 's'},
        {"lock", required_argument, NULL, 'l'},          {"resource-hex", required_argument, NULL, 'r'},
        {"store", required_argument, NULL, 'S'},         {"node", required_argument, NULL, 'n'},
        {"actor", required_argument, NULL, 'a'},         {"actors", required_argument, NULL, 'N'},
        {"resource-id", required_argument, NULL, 'R'},   {"lease-ms", required_argument, NULL, 'L'},
        {"task", required_argument, NULL, 't'},          {"life", required_argument, NULL, 'i'},
        {"turn-fd", required_argument, NULL, 'T'},       {"watchdog-fd", required_argument, NULL, 'W'},
        {"yield-fd", required_argument, NULL, 'Y'},      {"reply-limit-ms", required_argument, NULL, 'm'},
        {"permits", required_argument, NULL, 'p'},       {"fixed-lease", no_argument, NULL, 'f'},
        {"adapter", required_argument, NULL, 'A'},       {"supervisor", required_argument, NULL, 'V'},
        {"plugin", required_argument, NULL, 'P'},        {"checks-validity", no_argument, NULL, 'c'},
        {"open-limit-ms", required_argument, NULL, 'o'}, {0}};
    struct env_live_options *env = &arguments->env;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        bool good = true;
        switch (option) {
        case 'h': arguments->history = optarg; break;
        case 's': arguments->page = optarg; break;
        case 'l': arguments->lock = optarg; break;
        case 'A': env->adapter.program = optarg; break;
        case 'V': env->adapter.supervisor = optarg; break;
        case 'P': arguments->plugin = optarg; break;
        case 'r': good = unhex(optarg, &arguments->resource, &arguments->resource_length); break;
        case 'S': arguments->store = optarg; break;
        case 'n':
            good = env->node_count < ENV_LIVE_NODES;
            if (good) env->nodes[env->node_count++] = optarg;
            break;
        case 'N': arguments->actors = optarg; break;
        case 'a': good = argument_number(optarg, &arguments->actor); break;
        case 'R': good = argument_number(optarg, &arguments->resource_id); break;
        case 'L': good = argument_number(optarg, &arguments->lease_ms); break;
        case 'f': arguments->fixed_lease = true; break;
        case 'c': arguments->checks_validity = true; break;
        case 'p': good = argument_number(optarg, &arguments->permits); break;
        case 't': good = argument_number(optarg, &arguments->task); break;
        case 'i': good = argument_number(optarg, &arguments->life); break;
        case 'T': good = argument_number(optarg, &arguments->turn_fd); break;
        case 'W': good = argument_number(optarg, &arguments->watchdog_fd); break;
        case 'Y': good = argument_number(optarg, &arguments->yield_fd); break;
        case 'm': good = argument_number(optarg, &env->reply_limit_ms); break;
        case 'o': good = argument_number(optarg, &arguments->open_limit_ms); break;
        default: return false;
        }
        if (!good) {
            fprintf(stderr, "client: not a usable value: %s\n", optarg);
            return false;
        }
    }
    env->adapter.page = arguments->page;
    env->adapter.life = arguments->life;
    bool named = arguments->lock || env->adapter.program || arguments->plugin;
    return arguments->history && arguments->page && named && arguments->resource && arguments->store && optind == argc;
}

const struct lock_type *client_arguments_lock(const struct client_arguments *arguments) {
    static struct plugin plugin;
    char reason[PLUGIN_REASON];
    if (arguments->env.adapter.program) return &LOCK_ADAPTER;
    if (!arguments->plugin) return lock_find(arguments->lock);
    if (plugin_load(arguments->plugin, &plugin, reason)) return plugin.lock;
    fprintf(stderr, "client: %s\n", reason);
    exit(ENV_GAVE_UP);
}
