/* A client: one process that hosts one lock and uses the store, one step at a time as the driver tells it through the
 * stage. Worker and watchdog are in this one process, so stopping it stops the world, as a garbage collection does.
 *
 * Stamps are conservative: a grant is recorded after it came back, a release before it is sent, so that no correct lock
 * can look wrong. Exit status: 0 told to, 2 bad arguments, 3 a node did not answer, 4 its adapter is none. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/actor.h"
#include "harness/env_live.h"
#include "harness/locks/lock.h"

struct client {
    struct actor actor;
    struct env *env;
    struct lock lock;
    struct strand_place *place;
    int store;         /* the store's number among the nodes */
    uint32_t resource; /* index of the lock's name */
    uint32_t op;       /* the last operation's number */
    uint32_t grant;    /* index of the grant it acts under, 0: none */
    uint32_t depth;    /* grants of a re-entrant lock that it has not released; of any other: 1 or 0 */
    int64_t token;
    int64_t version[HISTORY_OBJECT_COUNT]; /* last read under this grant, -1: none */
};

/* A stamp of this host's clock as one of the trial's; 0 stays 0, and for ever is for ever. */
static int64_t trial_stamp(const struct client *client, int64_t host_ns) {
    if (host_ns == 0 || host_ns == INT64_MAX) return host_ns;
    return host_ns + atomic_load_explicit(&client->place->suspended_ns, memory_order_acquire);
}

/* For whoever suspends this host, and has to say on its behalf that it goes on believing. Before the record, so that
 * the history never knows of a validity that the stage does not. */
static void client_publish_validity(struct client *client, int64_t host_ns) {
    atomic_store(&client->place->valid_until_ns, host_ns);
}

/* --- lock --- */

static void client_forget_reads(struct client *client) {
    for (int object = 0; object < HISTORY_OBJECT_COUNT; object++) client->version[object] = -1;
}

static void client_acquire(struct client *client, const struct step *step, struct step_result *result) {
    uint32_t op = ++client->op;
    actor_append(&client->actor,
                 (struct history_record){
                     .kind = HISTORY_ACQUIRE_INVOKE, .name = client->resource, .op = op, .value = step->wait_ms});
    env_checkpoint(client->env, "before-acquire");
    struct lock_grant grant = lock_acquire(&client->lock, step->wait_ms);
    if (grant.outcome == OUTCOME_OK && step->token) grant.token = step->token;
    if (grant.outcome == OUTCOME_OK) client_publish_validity(client, grant.valid_until_ns);
    uint64_t index =
        actor_append(&client->actor, (struct history_record){.kind = HISTORY_ACQUIRE_RETURN,
                                                             .outcome = (uint8_t)grant.outcome,
                                                             .name = client->resource,
                                                             .op = op,
                                                             .token = grant.token,
                                                             .value = trial_stamp(client, grant.valid_until_ns)});
    result->outcome = (uint32_t)grant.outcome;
    result->token = grant.token;
    result->value = grant.item;
    if (grant.outcome != OUTCOME_OK) return;
    client->grant = index == HISTORY_FULL ? 0 : (uint32_t)index;
    client->token = grant.token;
    bool again = client->depth > 0 && client->lock.traits & LOCK_TRAIT_REENTRANT;
    client->depth = again ? client->depth + 1 : 1;
    if (!again) client_forget_reads(client);
    env_checkpoint(client->env, "after-acquire");
}

static void client_release(struct client *client, struct step_result *result) {
    uint32_t op = ++client->op, grant = client->grant;
    if (client->depth <= 1) client_publish_validity(client, 0);
    actor_append(&client->actor, (struct history_record){.kind = HISTORY_RELEASE_INVOKE,
                                                         .name = client->resource,
                                                         .op = op,
                                                         .grant = grant,
                                                         .token = client->token});
    enum outcome outcome = lock_release(&client->lock);
    actor_append(&client->actor, (struct history_record){.kind = HISTORY_RELEASE_RETURN,
                                                         .outcome = (uint8_t)outcome,
                                                         .name = client->resource,
                                                         .op = op,
                                                         .grant = grant,
                                                         .token = client->token});
    result->outcome = (uint32_t)outcome;
    if (client->depth > 1) {
        client->depth--;
        return;
    }
    client->depth = 0;
    client->grant = 0;
    client->token = 0;
    client_forget_reads(client);
}

static void client_renew(struct client *client, struct step_result *result) {
    uint32_t op = ++client->op;
    actor_append(&client->actor,
                 (struct history_record){
                     .kind = HISTORY_RENEW_INVOKE, .name = client->resource, .op = op, .grant = client->grant});
    enum outcome outcome = lock_renew(&client->lock);
    actor_append(&client->actor, (struct history_record){.kind = HISTORY_RENEW_RETURN,
                                                         .outcome = (uint8_t)outcome,
                                                         .name = client->resource,
                                                         .op = op,
                                                         .grant = client->grant});
    result->outcome = (uint32_t)outcome;
}

/* The lock of its own accord, perhaps in its watchdog's thread: beside the worker nothing of the client may be read
 * that changes. */
static void client_told_validity(void *holder, int64_t valid_until_ns) {
    struct client *client = holder;
    enum outcome outcome = valid_until_ns > env_mono_ns(client->env) ? OUTCOME_OK : OUTCOME_REFUSED;
    client_publish_validity(client, outcome == OUTCOME_OK ? valid_until_ns : 0);
    actor_append(&client->actor, (struct history_record){.kind = HISTORY_VALIDITY,
                                                         .outcome = (uint8_t)outcome,
                                                         .name = client->resource,
                                                         .value = trial_stamp(client, valid_until_ns)});
}

/* --- store --- */

/* The store answers [value, version], or an error that begins with FENCED when the token was too old. */
static void store_answer(const struct env_reply *reply, struct step_result *result) {
    result->error[0] = '\0';
    if (reply->kind == ENV_REPLY_ARRAY && reply->count == 2) {
        result->outcome = OUTCOME_OK;
        result->value = reply->items[0].integer;
        result->version = reply->items[1].integer;
    } else if (reply->kind == ENV_REPLY_ERROR) {
        result->outcome = OUTCOME_REFUSED; /* the store decides before it acts */
        snprintf(result->error, sizeof result->error, "%s", reply->text);
    } else {
        result->outcome = OUTCOME_UNKNOWN;
    }
}

static void client_read(struct client *client, unsigned object, struct step_result *result) {
    uint32_t op = ++client->op;
    actor_append(&client->actor, (struct history_record){.kind = HISTORY_READ_INVOKE,
                                                         .object = (uint8_t)object,
                                                         .op = op,
                                                         .grant = client->grant,
                                                         .token = client->token});
    env_checkpoint(client->env, "before-read");
    store_answer(env_command(client->env, client->store, "GET %s TOKEN %lld ACTOR %u OP %u GRANT %u",
                             history_object_name(object), (long long)client->token, client->actor.id, op,
                             client->grant),
                 result);
    client->version[object] = result->outcome == OUTCOME_OK ? result->version : -1;
    actor_append(&client->actor, (struct history_record){.kind = HISTORY_READ_RETURN,
                                                         .outcome = (uint8_t)result->outcome,
                                                         .object = (uint8_t)object,
                                                         .op = op,
                                                         .grant = client->grant,
                                                         .token = client->token,
                                                         .value = result->value,
                                                         .extra = result->version});
}

/* verb SET writes a value that was computed from the version last read; ADD lets the store compute. */
static void client_write(struct client *client, const char *verb, unsigned object, int64_t value,
                         struct step_result *result) {
    uint32_t op = ++client->op;
    int64_t based_on = client->version[object];
    actor_append(&client->actor, (struct history_record){.kind = HISTORY_WRITE_INVOKE,
                                                         .object = (uint8_t)object,
                                                         .op = op,
                                                         .grant = client->grant,
                                                         .token = client->token,
                                                         .value = value,
                                                         .extra = based_on});
    env_checkpoint(client->env, "before-write");
    store_answer(env_command(client->env, client->store, "%s %s %lld TOKEN %lld ACTOR %u OP %u GRANT %u VERSION %lld",
                             verb, history_object_name(object), (long long)value, (long long)client->token,
                             client->actor.id, op, client->grant, (long long)based_on),
                 result);
    if (result->outcome == OUTCOME_OK) client->version[object] = result->version;
    actor_append(&client->actor, (struct history_record){.kind = HISTORY_WRITE_RETURN,
                                                         .outcome = (uint8_t)result->outcome,
                                                         .object = (uint8_t)object,
                                                         .op = op,
                                                         .grant = client->grant,
                                                         .token = client->token,
                                                         .value = value,
                                                         .extra = result->version});
    env_checkpoint(client->env, "after-write");
}

/* --- workload --- */

/* One read-modify-write under the lock. A refused write ends the turn like an accepted one: what was promised to the
 * caller of the lock was only a place in the critical section. False: nothing was done. */
static bool workload_turn(struct client *client, const struct step *step, struct step_result *result) {
    client_acquire(client, step, result);
    if (result->outcome != OUTCOME_OK) return false;
    client_read(client, step->object, result);
    if (result->outcome == OUTCOME_OK) {
        int64_t value = result->value;
        env_sleep(client->env, step->work_ms);
        client_write(client, "SET", step->object, value + step->value, result);
    }
    struct step_result written = *result;
    client_release(client, result);
    *result = written;
    return true;
}

static void client_workload(struct client *client, const struct step *step, struct step_result *result) {
    int64_t until_ns = step->duration_ms ? env_mono_ns(client->env) + step->duration_ms * ENV_NS_PER_MS : INT64_MAX;
    uint32_t turns = 0;
    bool done = false;
    for (int64_t turn = 0; !done && (step->turns == 0 || turn < step->turns); turn++) {
        if (env_mono_ns(client->env) >= until_ns) break;
        bool last = atomic_load_explicit(&client->place->last_turn, memory_order_acquire);
        bool granted = workload_turn(client, step, result);
        turns += granted;
        done = last && granted;
        /* At least a millisecond, or a workload without work would never let virtual time pass. */
        if (step->turns == 0 && !done)
            env_sleep(client->env, 1 + (int64_t)env_random_below(client->env, 2 * (uint64_t)step->think_ms + 1));
    }
    result->turns = turns;
}

/* Nothing but the lock, until `turns` attempts are made or the history is full. Sleeps are whole milliseconds, so a
 * fast pace comes in bursts of what fell due meanwhile. */
static void client_hold(struct client *client, const struct step *step, struct step_result *result) {
    int64_t began_ns = env_mono_ns(client->env);
    uint32_t granted = 0;
    bool recorded = true;
    for (int64_t turn = 0; recorded && (step->turns == 0 || turn < step->turns); turn++) {
        int64_t early_ns = step->pace_us ? began_ns + turn * step->pace_us * 1000 - env_mono_ns(client->env) : 0;
        if (early_ns > 0) env_sleep(client->env, (early_ns + ENV_NS_PER_MS - 1) / ENV_NS_PER_MS);
        client_acquire(client, step, result);
        if (result->outcome != OUTCOME_OK) continue;
        granted++;
        recorded = client->grant != 0;
        env_sleep(client->env, step->work_ms);
        client_release(client, result);
    }
    result->turns = granted;
}

/* --- steps --- */

static void client_step(struct client *client, const struct step *step, struct step_result *result) {
    switch (step->kind) {
    case STEP_ACQUIRE: client_acquire(client, step, result); break;
    case STEP_RELEASE: client_release(client, result); break;
    case STEP_RENEW: client_renew(client, result); break;
    case STEP_READ: client_read(client, step->object, result); break;
    case STEP_WRITE: client_write(client, "SET", step->object, step->value, result); break;
    case STEP_ADD: client_write(client, "ADD", step->object, step->value, result); break;
    case STEP_SLEEP:
        env_sleep(client->env, step->work_ms);
        result->outcome = OUTCOME_OK;
        break;
    case STEP_WORKLOAD: client_workload(client, step, result); break;
    case STEP_IS_HELD: result->outcome = (uint32_t)lock_is_held(&client->lock); break;
    case STEP_HOLD: client_hold(client, step, result); break;
    default: break;
    }
}

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
    const char *history, *stage, *lock, *store;
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
    const struct option options[] = {{"history", required_argument, NULL, 'h'},
                                     {"stage", required_argument, NULL, 's'},
                                     {"lock", required_argument, NULL, 'l'},
                                     {"resource-hex", required_argument, NULL, 'r'},
                                     {"store", required_argument, NULL, 'S'},
                                     {"node", required_argument, NULL, 'n'},
                                     {"actor", required_argument, NULL, 'a'},
                                     {"resource-id", required_argument, NULL, 'R'},
                                     {"lease-ms", required_argument, NULL, 'L'},
                                     {"strand", required_argument, NULL, 't'},
                                     {"life", required_argument, NULL, 'i'},
                                     {"turn-fd", required_argument, NULL, 'T'},
                                     {"watchdog-fd", required_argument, NULL, 'W'},
                                     {"yield-fd", required_argument, NULL, 'Y'},
                                     {"reply-limit-ms", required_argument, NULL, 'm'},
                                     {"permits", required_argument, NULL, 'p'},
                                     {"fixed-lease", no_argument, NULL, 'f'},
                                     {"adapter", required_argument, NULL, 'A'},
                                     {0}};
    struct env_live_options *env = &arguments->env;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        bool good = true;
        switch (option) {
        case 'h': arguments->history = optarg; break;
        case 's': arguments->stage = optarg; break;
        case 'l': arguments->lock = optarg; break;
        case 'A': env->adapter = optarg; break;
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
    return arguments->history && arguments->stage && (arguments->lock || env->adapter) && arguments->resource &&
           arguments->store && optind == argc;
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
    const struct lock_type *type = arguments.env.adapter ? &LOCK_ADAPTER : lock_find(arguments.lock);
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
    client_forget_reads(&client);
    struct lock_options options = {arguments.resource, arguments.resource_length, arguments.lease_ms, arguments.permits,
                                   arguments.fixed_lease};
    enum outcome opened = lock_open(&client.lock, type, client.env, &options);
    unsigned traits = options.fixed_lease ? client.lock.traits & ~(unsigned)LOCK_TRAIT_RENEWS : client.lock.traits;
    if (opened == OUTCOME_OK) {
        actor_append(&client.actor, (struct history_record){.kind = HISTORY_LOCK_OPEN,
                                                            .outcome = OUTCOME_OK,
                                                            .name = client.resource,
                                                            .value = traits & LOCK_TRAIT_LEASE ? options.lease_ms : 0,
                                                            .extra = (int64_t)traits,
                                                            .token = client.lock.capacity == LOCK_CAPACITY_ASKED
                                                                         ? options.permits
                                                                         : client.lock.capacity});
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
