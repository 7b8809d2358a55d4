/* A client: one process that hosts one lock and uses the resource. The driver gives it one step at a time through the
 * shared page. Worker and watchdog are in this one process, so stopping it stops both, as a garbage collection does.
 *
 * Exit status: 0 after STEP_EXIT, 2 bad arguments, 3 a node did not answer, 4 its adapter or its plug-in cannot be
 * used. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/client/client.h"
#include "harness/client/live_resource.h"
#include "harness/client/plugin.h"
#include "harness/environment/env_live.h"
#include "harness/process/zygote_service.h"

static void client_serve(struct client *client, struct task *task) {
    for (;;) {
        task_park(task, TASK_IDLE);
        struct step step = client->place->step;
        if (step.kind == STEP_EXIT) return;
        struct step_result result = {.outcome = OUTCOME_UNKNOWN};
        client_step(client, &step, &result);
        client->place->result = result;
    }
}

/* --- start --- */

struct client_arguments {
    bool fixed_lease, checks_validity;
    const char *history, *page, *lock, *plugin, *store;
    char *resource;
    size_t resource_length;
    struct env_live_options env;
    int64_t actor, resource_id, lease_ms, permits, task, life, turn_fd, watchdog_fd, yield_fd;
    int64_t open_limit_ms; /* the reply limit while the lock is opened, on which no verdict rests; 0: the usual one */
};

static bool number(const char *text, int64_t *value) {
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

static bool parse(int argc, char **argv, struct client_arguments *arguments) {
    const struct option options[] = {{"history", required_argument, NULL, 'h'},
                                     {"page", required_argument, NULL, 's'},
                                     {"lock", required_argument, NULL, 'l'},
                                     {"resource-hex", required_argument, NULL, 'r'},
                                     {"store", required_argument, NULL, 'S'},
                                     {"node", required_argument, NULL, 'n'},
                                     {"actor", required_argument, NULL, 'a'},
                                     {"resource-id", required_argument, NULL, 'R'},
                                     {"lease-ms", required_argument, NULL, 'L'},
                                     {"task", required_argument, NULL, 't'},
                                     {"life", required_argument, NULL, 'i'},
                                     {"turn-fd", required_argument, NULL, 'T'},
                                     {"watchdog-fd", required_argument, NULL, 'W'},
                                     {"yield-fd", required_argument, NULL, 'Y'},
                                     {"reply-limit-ms", required_argument, NULL, 'm'},
                                     {"permits", required_argument, NULL, 'p'},
                                     {"fixed-lease", no_argument, NULL, 'f'},
                                     {"adapter", required_argument, NULL, 'A'},
                                     {"supervisor", required_argument, NULL, 'V'},
                                     {"plugin", required_argument, NULL, 'P'},
                                     {"checks-validity", no_argument, NULL, 'c'},
                                     {"open-limit-ms", required_argument, NULL, 'o'},
                                     {0}};
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
        case 'a': good = number(optarg, &arguments->actor); break;
        case 'R': good = number(optarg, &arguments->resource_id); break;
        case 'L': good = number(optarg, &arguments->lease_ms); break;
        case 'f': arguments->fixed_lease = true; break;
        case 'c': arguments->checks_validity = true; break;
        case 'p': good = number(optarg, &arguments->permits); break;
        case 't': good = number(optarg, &arguments->task); break;
        case 'i': good = number(optarg, &arguments->life); break;
        case 'T': good = number(optarg, &arguments->turn_fd); break;
        case 'W': good = number(optarg, &arguments->watchdog_fd); break;
        case 'Y': good = number(optarg, &arguments->yield_fd); break;
        case 'm': good = number(optarg, &env->reply_limit_ms); break;
        case 'o': good = number(optarg, &arguments->open_limit_ms); break;
        default: return false;
        }
        if (!good) return fprintf(stderr, "client: not a usable value: %s\n", optarg), false;
    }
    env->adapter.page = arguments->page;
    env->adapter.life = arguments->life;
    bool named = arguments->lock || env->adapter.program || arguments->plugin;
    return arguments->history && arguments->page && named && arguments->resource && arguments->store && optind == argc;
}

/* The lock to host: of the table, an adapter's, or a plug-in's; ends the process when the plug-in cannot be loaded. */
static const struct lock_type *type_find(const struct client_arguments *arguments) {
    static struct plugin plugin;
    char reason[PLUGIN_REASON];
    if (arguments->env.adapter.program) return &LOCK_ADAPTER;
    if (!arguments->plugin) return lock_find(arguments->lock);
    if (plugin_load(arguments->plugin, &plugin, reason)) return plugin.lock;
    fprintf(stderr, "client: %s\n", reason);
    exit(ENV_GAVE_UP);
}

/* Worker and watchdog have neighbouring places on the shared page. */
static void tasks_fill(struct client_arguments *arguments, struct shared_page *page) {
    struct task worker = {.page = page,
                          .place = &page->tasks[arguments->task],
                          .turn_fd = (int)arguments->turn_fd,
                          .yield_fd = (int)arguments->yield_fd};
    arguments->env.worker = worker;
    arguments->env.host = worker.place;
    worker.place += 1;
    worker.turn_fd = (int)arguments->watchdog_fd;
    arguments->env.watchdog = worker;
    arguments->env.stream = (uint64_t)(arguments->task + arguments->life * SHARED_PAGE_TASKS);
}

int main(int argc, char **argv) {
    struct client_arguments arguments = {.task = -1, .permits = 1, .env = {.reply_limit_ms = 1000}};
    zygote_begin(&argc, &argv);
    if (!parse(argc, argv, &arguments)) return 2;
    struct history_error error;
    const struct lock_type *type = type_find(&arguments);
    struct history *history = history_open(arguments.history, &error);
    struct shared_page *page = history ? shared_page_open(arguments.page, &error) : NULL;
    if (!page || !type || arguments.task < 0 || arguments.task > SHARED_PAGE_TASKS - 2) {
        fprintf(stderr, "client: %s\n", page ? "unknown lock or task" : error.text);
        return 2;
    }
    tasks_fill(&arguments, page);
    task_enter(&arguments.env.worker);
    struct client client = {
        .actor = {history, page, (uint32_t)arguments.actor, arguments.env.host},
        .place = arguments.env.worker.place,
        .checks_validity = arguments.checks_validity,
        .lock_name = (uint32_t)arguments.resource_id,
    };
    arguments.env.announce_validity = client_announce_validity;
    arguments.env.record_answers = client_record_answers;
    arguments.env.holder = &client;
    client.env = env_live_open(&arguments.env);
    const struct live_task worker = {arguments.env.worker, arguments.env.host,
                                     arguments.env.reply_limit_ms * ENV_NS_PER_MS};
    struct live_resource resource;
    client.resource = live_resource_open(&resource, &worker, arguments.store);
    const struct lock_options options = {arguments.resource, arguments.resource_length, arguments.lease_ms,
                                         arguments.permits, arguments.fixed_lease};
    if (arguments.open_limit_ms) env_live_set_reply_limit(client.env, arguments.open_limit_ms);
    enum outcome opened = client_open(&client, type, &options);
    env_live_set_reply_limit(client.env, arguments.env.reply_limit_ms);
    if (opened == OUTCOME_OK) {
        client_serve(&client, &arguments.env.worker);
    } else {
        fprintf(stderr, "client: the node %s did not answer while the lock was opened\n", arguments.env.nodes[0]);
    }
    lock_close(&client.lock);
    free(arguments.resource);
    env_live_close(client.env);
    live_resource_close(&resource);
    history_close(history);
    shared_page_close(page);
    return opened == OUTCOME_OK ? 0 : 3;
}
