#include "harness/client_work.h"

#include <inttypes.h>
#include <stdio.h>

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

/* Perhaps in its watchdog's thread: beside the worker nothing of the client may be read that changes. */
void client_told_validity(void *holder, int64_t valid_until_ns) {
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

/* Between read and write; false: the lock says that it is lost. */
static bool workload_work(struct client *client, int64_t work_ms) {
    struct step_result renewed = {.outcome = OUTCOME_UNKNOWN};
    if (!client->extends) return env_sleep(client->env, work_ms), true;
    env_sleep(client->env, work_ms / 2);
    client_renew(client, &renewed);
    if (renewed.outcome == OUTCOME_REFUSED) return false;
    env_sleep(client->env, work_ms - work_ms / 2);
    return true;
}

/* One read-modify-write under the lock. A refused write ends the turn like an accepted one: what was promised to the
 * caller of the lock was only a place in the critical section. False: nothing was done. */
static bool workload_turn(struct client *client, const struct step *step, struct step_result *result) {
    client_acquire(client, step, result);
    if (result->outcome != OUTCOME_OK) return false;
    client_read(client, step->object, result);
    if (result->outcome == OUTCOME_OK) {
        int64_t value = result->value;
        if (workload_work(client, step->work_ms))
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

void client_step(struct client *client, const struct step *step, struct step_result *result) {
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

enum outcome client_open(struct client *client, const struct lock_type *type, const struct lock_options *options) {
    client_forget_reads(client);
    enum outcome opened = lock_open(&client->lock, type, client->env, options);
    if (opened != OUTCOME_OK) return opened;
    unsigned traits = client->lock.traits;
    int capacity = client->lock.capacity;
    if (options->fixed_lease) traits &= ~(unsigned)LOCK_TRAIT_RENEWS;
    actor_append(&client->actor,
                 (struct history_record){.kind = HISTORY_LOCK_OPEN,
                                         .outcome = OUTCOME_OK,
                                         .name = client->resource,
                                         .value = traits & LOCK_TRAIT_LEASE ? options->lease_ms : 0,
                                         .extra = (int64_t)traits,
                                         .token = capacity == LOCK_CAPACITY_ASKED ? options->permits : capacity});
    return opened;
}
