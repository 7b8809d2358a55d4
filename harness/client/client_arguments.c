#include "harness/client/client_arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/client/plugin.h"
#include "harness/process/arguments.h"

/* Decodes pairs of hexadecimal digits: a resource's name may hold any byte. */
static bool resource_take(const char *text, void *place) {
    struct client_arguments *arguments = place;
    size_t digits = strlen(text);
    free(arguments->resource);
    arguments->resource = malloc(digits / 2 + 1);
    arguments->resource_length = digits / 2;
    if (!arguments->resource) abort();
    for (size_t each = 0; each < digits / 2; each++) {
        unsigned byte;
        if (sscanf(text + 2 * each, "%2x", &byte) != 1) return false;
        arguments->resource[each] = (char)byte;
    }
    return digits % 2 == 0;
}

static bool client_node_take(const char *address, void *place) {
    struct env_live_options *env = place;
    if (env->node_count == ENV_LIVE_NODES) return false;
    env->nodes[env->node_count++] = address;
    return true;
}

bool client_arguments_parse(int argc, char **argv, struct client_arguments *arguments) {
    struct env_live_options *env = &arguments->env;
    const struct argument table[] = {
        TEXT_ARGUMENT("history", &arguments->history),
        TEXT_ARGUMENT("page", &arguments->page),
        TEXT_ARGUMENT("lock", &arguments->lock),
        TEXT_ARGUMENT("adapter", &env->adapter.program),
        TEXT_ARGUMENT("supervisor", &env->adapter.supervisor),
        TEXT_ARGUMENT("plugin", &arguments->plugin),
        OTHER_ARGUMENT("resource-hex", arguments, resource_take),
        TEXT_ARGUMENT("store", &arguments->store),
        OTHER_ARGUMENT("node", env, client_node_take),
        NUMBER_ARGUMENT("actor", &arguments->actor),
        TEXT_ARGUMENT("actors", &arguments->actors),
        NUMBER_ARGUMENT("resource-id", &arguments->resource_id),
        NUMBER_ARGUMENT("lease-ms", &arguments->lease_ms),
        FLAG_ARGUMENT("fixed-lease", &arguments->fixed_lease),
        FLAG_ARGUMENT("checks-validity", &arguments->checks_validity),
        NUMBER_ARGUMENT("permits", &arguments->permits),
        NUMBER_ARGUMENT("task", &arguments->task),
        NUMBER_ARGUMENT("life", &arguments->life),
        NUMBER_ARGUMENT("turn-fd", &arguments->turn_fd),
        NUMBER_ARGUMENT("watchdog-fd", &arguments->watchdog_fd),
        NUMBER_ARGUMENT("yield-fd", &arguments->yield_fd),
        NUMBER_ARGUMENT("reply-limit-ms", &env->reply_limit_ms),
        NUMBER_ARGUMENT("open-limit-ms", &arguments->open_limit_ms),
        {0},
    };
    struct argument_refused refused;
    if (!arguments_read(argc, argv, table, &refused)) {
        if (refused.name) fprintf(stderr, "client: not a usable value: %s\n", refused.value);
        return false;
    }
    env->adapter.page = arguments->page;
    env->adapter.life = arguments->life;
    bool named = arguments->lock || env->adapter.program || arguments->plugin;
    return arguments->history && arguments->page && named && arguments->resource && arguments->store;
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
