/* A client: one process that hosts one lock and uses the store, one step at a time as the driver tells it through the
 * stage. Worker and watchdog are in this one process, so stopping it stops the world, as a garbage collection does.
 *
 * Exit status: 0 told to, 2 bad arguments, 3 a node did not answer, 4 its adapter or its plug-in is none. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/client_work.h"
#include "harness/env_live.h"
#include "harness/plugin.h"

static void client_serve(struct client *client, struct strand *strand) {
    for (;;) {
        strand_park(strand, STRAND_IDLE);
        struct step step = client->place->step;
        if (step.kind == STEP_EXIT) return;
        struct step_result result = {.outcome = OUTCOME_UNKNOWN};
        client_step(client, &step, &result);
        client->place->result = result;
    }
}

/* --- start --- */

struct arguments {
    bool fixed_lease;
    const char *history, *stage, *lock, *plugin, *store;
    char *resource;
    size_t resource_length;
    struct env_live_options env;
    int64_t actor, resource_id, lease_ms, permits, strand, life, turn_fd, watchdog_fd, yield_fd;
};

static bool number(const char *text, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

/* The bytes for which two hexadecimal digits each stand, in *bytes, which the caller frees: a name may hold any. */
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

static bool parse(int argc, char **argv, struct arguments *arguments) {
    const struct option options[] = {
        {"history", required_argument, NULL, 'h'},        {"stage", required_argument, NULL, 's'},
        {"lock", required_argument, NULL, 'l'},           {"resource-hex", required_argument, NULL, 'r'},
        {"store", required_argument, NULL, 'S'},          {"node", required_argument, NULL, 'n'},
        {"actor", required_argument, NULL, 'a'},          {"resource-id", required_argument, NULL, 'R'},
        {"lease-ms", required_argument, NULL, 'L'},       {"strand", required_argument, NULL, 't'},
        {"life", required_argument, NULL, 'i'},           {"turn-fd", required_argument, NULL, 'T'},
        {"watchdog-fd", required_argument, NULL, 'W'},    {"yield-fd", required_argument, NULL, 'Y'},
        {"reply-limit-ms", required_argument, NULL, 'm'}, {"permits", required_argument, NULL, 'p'},
        {"fixed-lease", no_argument, NULL, 'f'},          {"adapter", required_argument, NULL, 'A'},
        {"plugin", required_argument, NULL, 'P'},         {0}};
    struct env_live_options *env = &arguments->env;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        bool good = true;
        switch (option) {
        case 'h': arguments->history = optarg; break;
        case 's': arguments->stage = optarg; break;
        case 'l': arguments->lock = optarg; break;
        case 'A': env->adapter = optarg; break;
        case 'P': arguments->plugin = optarg; break;
        case 'r': good = unhex(optarg, &arguments->resource, &arguments->resource_length); break;
        case 'S': arguments->store = optarg; break;
        case 'n':
            good = env->node_count < ENV_LIVE_NODES - 1;
            if (good) env->nodes[env->node_count++] = optarg;
            break;
        case 'a': good = number(optarg, &arguments->actor); break;
        case 'R': good = number(optarg, &arguments->resource_id); break;
        case 'L': good = number(optarg, &arguments->lease_ms); break;
        case 'f': arguments->fixed_lease = true; break;
        case 'p': good = number(optarg, &arguments->permits); break;
        case 't': good = number(optarg, &arguments->strand); break;
        case 'i': good = number(optarg, &arguments->life); break;
        case 'T': good = number(optarg, &arguments->turn_fd); break;
        case 'W': good = number(optarg, &arguments->watchdog_fd); break;
        case 'Y': good = number(optarg, &arguments->yield_fd); break;
        case 'm': good = number(optarg, &env->reply_limit_ms); break;
        default: return false;
        }
        if (!good) return fprintf(stderr, "client: not a usable value: %s\n", optarg), false;
    }
    bool named = arguments->lock || env->adapter || arguments->plugin;
    return arguments->history && arguments->stage && named && arguments->resource && arguments->store && optind == argc;
}

/* The lock that it is to host: of the table, an adapter's, or a plug-in's, without which there is nothing to do. */
static const struct lock_type *type_find(const struct arguments *arguments) {
    static struct plugin plugin;
    char reason[PLUGIN_REASON];
    if (arguments->env.adapter) return &LOCK_ADAPTER;
    if (!arguments->plugin) return lock_find(arguments->lock);
    if (plugin_load(arguments->plugin, &plugin, reason)) return plugin.lock;
    fprintf(stderr, "client: %s\n", reason);
    exit(ENV_LIVE_GAVE_UP);
}

/* Worker and watchdog stand side by side on the stage. */
static void strands_fill(struct arguments *arguments, struct stage *stage) {
    struct strand worker = {.stage = stage,
                            .place = &stage->strands[arguments->strand],
                            .turn_fd = (int)arguments->turn_fd,
                            .yield_fd = (int)arguments->yield_fd};
    arguments->env.worker = worker;
    arguments->env.host = worker.place;
    worker.place += 1;
    worker.turn_fd = (int)arguments->watchdog_fd;
    arguments->env.watchdog = worker;
    arguments->env.stream = (uint64_t)(arguments->strand + arguments->life * STAGE_STRANDS);
    arguments->env.nodes[arguments->env.node_count++] = arguments->store;
    arguments->env.hidden_nodes = 1;
}

int main(int argc, char **argv) {
    struct arguments arguments = {.strand = -1, .permits = 1, .env = {.reply_limit_ms = 1000}};
    if (!parse(argc, argv, &arguments)) return 2;
    struct history_error error;
    const struct lock_type *type = type_find(&arguments);
    struct history *history = history_open(arguments.history, &error);
    struct stage *stage = history ? stage_open(arguments.stage, &error) : NULL;
    if (!stage || !type || arguments.strand < 0 || arguments.strand > STAGE_STRANDS - 2) {
        fprintf(stderr, "client: %s\n", stage ? "unknown lock or strand" : error.text);
        return 2;
    }
    strands_fill(&arguments, stage);
    strand_enter(&arguments.env.worker);
    struct client client = {
        .actor = {history, stage, (uint32_t)arguments.actor, arguments.env.host},
        .place = arguments.env.worker.place,
        .store = arguments.env.node_count - 1,
        .resource = (uint32_t)arguments.resource_id,
    };
    arguments.env.told_validity = client_told_validity;
    arguments.env.holder = &client;
    client.env = env_live_open(&arguments.env);
    const struct lock_options options = {arguments.resource, arguments.resource_length, arguments.lease_ms,
                                         arguments.permits, arguments.fixed_lease};
    enum outcome opened = client_open(&client, type, &options);
    if (opened == OUTCOME_OK) {
        client_serve(&client, &arguments.env.worker);
    } else {
        fprintf(stderr, "client: the node %s did not answer while the lock was opened\n", arguments.env.nodes[0]);
    }
    lock_close(&client.lock);
    free(arguments.resource);
    env_live_close(client.env);
    history_close(history);
    stage_close(stage);
    return opened == OUTCOME_OK ? 0 : 3;
}
