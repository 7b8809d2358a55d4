#include "harness/client/client.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/client/drawn_work.h"
#include "harness/client/validity.h"
#include "harness/environment/redis_command.h"

/* Appends a record of an operation on the resource: `record` without what is the same in all of them. */
static void client_record_access(const struct client *client, struct history_record record) {
    record.op = client->op;
    record.grant = client->grant;
    record.token = client->token;
    actor_append(&client->actor, record);
}

/* The same for an operation on the lock: it names the lock and, between a grant and its release, the grant. */
static void client_record_lock(const struct client *client, enum history_kind kind, enum outcome outcome,
                               int64_t token) {
    actor_append(&client->actor, (struct history_record){.kind = (uint8_t)kind,
                                                         .outcome = (uint8_t)outcome,
                                                         .name = client->lock_name,
                                                         .op = client->op,
                                                         .grant = client->grant,
                                                         .token = token});
}

/* --- lock --- */

static void client_forget_reads(struct client *client) {
    for (int object = 0; object < HISTORY_OBJECT_COUNT; object++) client->version[object] = -1;
}

static void client_acquire(struct client *client, const struct step *step, struct step_result *result) {
    uint32_t op = ++client->op;
    actor_append(&client->actor,
                 (struct history_record){
                     .kind = HISTORY_ACQUIRE_INVOKE, .name = client->lock_name, .op = op, .value = step->wait_ms});
    int64_t asked_ns = env_mono_ns(client->env);
    env_checkpoint(client->env, "before-acquire");
    struct lock_grant grant = lock_acquire(&client->lock, step->wait_ms);
    if (grant.outcome == OUTCOME_OK && step->token) grant.token = step->token;
    if (grant.outcome == OUTCOME_OK) validity_begin(&client->actor, grant.valid_until_ns);
    /* When the attempt that was granted began, if it is known and later than the acquire's invocation. */
    int64_t began_ns = grant.outcome == OUTCOME_OK ? env_attempt_ns(client->env) : 0;
    bool is_later = began_ns > asked_ns;
    uint64_t index = actor_append(
        &client->actor, (struct history_record){.kind = HISTORY_ACQUIRE_RETURN,
                                                .outcome = (uint8_t)grant.outcome,
                                                .name = client->lock_name,
                                                .op = op,
                                                .token = grant.token,
                                                .value = validity_trial_ns(&client->actor, grant.valid_until_ns),
                                                .extra = is_later ? validity_trial_ns(&client->actor, began_ns) : 0});
    result->outcome = (uint32_t)grant.outcome;
    result->token = grant.token;
    result->value = grant.item;
    client->settled += grant.outcome == OUTCOME_REFUSED && client->depth == 0;
    client->doubtful |= grant.outcome == OUTCOME_UNKNOWN;
    if (grant.outcome != OUTCOME_OK) return;
    client->grant = index == HISTORY_FULL ? 0 : (uint32_t)index; /* later records name the grant by its index */
    client->token = grant.token;
    atomic_store(&client->valid_until_ns, grant.valid_until_ns);
    bool again = client->depth > 0 && client->lock.traits & LOCK_TRAIT_REENTRANT;
    client->depth = again ? client->depth + 1 : 1;
    if (!again) client_forget_reads(client);
    env_checkpoint(client->env, "after-acquire");
}

static void client_release(struct client *client, struct step_result *result) {
    client->op++;
    /* Before the request: from here on nothing follows from the grant, however long the release takes. */
    if (client->depth <= 1) validity_end(&client->actor);
    client_record_lock(client, HISTORY_RELEASE_INVOKE, OUTCOME_UNKNOWN, client->token);
    enum outcome outcome = lock_release(&client->lock);
    client_record_lock(client, HISTORY_RELEASE_RETURN, outcome, client->token);
    result->outcome = (uint32_t)outcome;
    client->settled += outcome == OUTCOME_OK && client->depth <= 1;
    client->doubtful |= outcome == OUTCOME_UNKNOWN;
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
    client->op++;
    client_record_lock(client, HISTORY_RENEW_INVOKE, OUTCOME_UNKNOWN, 0);
    client->renewing = true;
    enum outcome outcome = lock_renew(&client->lock);
    client->renewing = false;
    client_record_lock(client, HISTORY_RENEW_RETURN, outcome, 0);
    result->outcome = (uint32_t)outcome;
}

/* A stamp that has passed says that the grant is lost; 0 would say that it states no validity. */
enum { LONG_AGO_NS = 1 };

/* May run in the watchdog's thread, beside the worker: of the client's other fields it reads only those that never
 * change. */
void client_announce_validity(void *holder, int64_t valid_until_ns) {
    struct client *client = holder;
    atomic_store(&client->valid_until_ns, valid_until_ns > 0 ? valid_until_ns : LONG_AGO_NS);
    validity_announce(&client->actor, client->lock_name, valid_until_ns);
}

/* Likewise. */
void client_record_answers(void *holder, int asked, int64_t answers, enum outcome outcome) {
    const struct client *client = holder;
    actor_append(&client->actor, (struct history_record){.kind = HISTORY_ANSWERS,
                                                         .outcome = (uint8_t)outcome,
                                                         .name = client->lock_name,
                                                         .value = answers,
                                                         .extra = asked});
}

static void client_ask_held(struct client *client, struct step_result *result) {
    enum outcome outcome = lock_is_held(&client->lock);
    actor_append(&client->actor, (struct history_record){
                                     .kind = HISTORY_IS_HELD, .outcome = (uint8_t)outcome, .name = client->lock_name});
    result->outcome = (uint32_t)outcome;
}

/* --- the resource --- */

/* Formats one command as env_command does, and exchanges it for its reply. */
__attribute__((format(printf, 2, 0))) static const struct env_reply *
resource_exchange(const struct resource_connection *connection, const char *format, ...) {
    va_list arguments;
    size_t length;
    va_start(arguments, format);
    char *command = redis_command_format(NULL, 0, format, arguments, &length);
    va_end(arguments);
    const struct env_reply *reply = connection->exchange(connection->holder, command, length);
    free(command);
    return reply;
}

/* The resource answers [value, version], or an error that begins with FENCED when the token was too old. */
static void client_take_answer(const struct env_reply *reply, struct step_result *result) {
    result->error[0] = '\0';
    if (reply->kind == ENV_REPLY_ARRAY && reply->count == 2) {
        result->outcome = OUTCOME_OK;
        result->value = reply->items[0].integer;
        result->version = reply->items[1].integer;
    } else if (reply->kind == ENV_REPLY_ERROR) {
        result->outcome = OUTCOME_REFUSED; /* the resource decides before it acts */
        snprintf(result->error, sizeof result->error, "%s", reply->text);
    } else {
        result->outcome = OUTCOME_UNKNOWN;
    }
}

static void client_read(struct client *client, unsigned object, struct step_result *result) {
    assert(object < HISTORY_OBJECT_COUNT);
    uint32_t op = ++client->op;
    client_record_access(client, (struct history_record){.kind = HISTORY_READ_INVOKE, .object = (uint8_t)object});
    env_checkpoint(client->env, "before-read");
    client_take_answer(resource_exchange(&client->resource, "GET %s TOKEN %lld ACTOR %u OP %u GRANT %u",
                                         history_object_name(object), (long long)client->token, client->actor.id, op,
                                         client->grant),
                       result);
    /* Without an answer a later write is based on nothing that is known: -1, and not the version read before. */
    client->version[object] = result->outcome == OUTCOME_OK ? result->version : -1;
    client_record_access(client, (struct history_record){.kind = HISTORY_READ_RETURN,
                                                         .outcome = (uint8_t)result->outcome,
                                                         .object = (uint8_t)object,
                                                         .value = result->value,
                                                         .extra = result->version});
}

/* Whether the grant is valid, as far as the client knows. Nothing holds between this and the write's arrival. */
static bool client_may_write(struct client *client) {
    if (!client->checks_validity) return true;
    int64_t until_ns = atomic_load(&client->valid_until_ns);
    bool valid = until_ns == 0 || env_mono_ns(client->env) < until_ns;
    env_checkpoint(client->env, "after-validity-check");
    return valid;
}

/* verb SET writes a value that was computed from the version last read; ADD lets the resource compute. A write that the
 * client does not make leaves no record. */
static void client_write(struct client *client, const char *verb, unsigned object, int64_t value,
                         struct step_result *result) {
    if (!client_may_write(client)) {
        result->outcome = OUTCOME_REFUSED;
        snprintf(result->error, sizeof result->error, "the validity that the lock stated is over");
        return;
    }
    assert(object < HISTORY_OBJECT_COUNT);
    uint32_t op = ++client->op;
    int64_t based_on = client->version[object];
    client_record_access(
        client, (struct history_record){
                    .kind = HISTORY_WRITE_INVOKE, .object = (uint8_t)object, .value = value, .extra = based_on});
    env_checkpoint(client->env, "before-write");
    client_take_answer(resource_exchange(&client->resource,
                                         "%s %s %lld TOKEN %lld ACTOR %u OP %u GRANT %u VERSION %lld", verb,
                                         history_object_name(object), (long long)value, (long long)client->token,
                                         client->actor.id, op, client->grant, (long long)based_on),
                       result);
    if (result->outcome == OUTCOME_OK) client->version[object] = result->version;
    client_record_access(client, (struct history_record){.kind = HISTORY_WRITE_RETURN,
                                                         .outcome = (uint8_t)result->outcome,
                                                         .object = (uint8_t)object,
                                                         .value = value,
                                                         .extra = result->version});
    env_checkpoint(client->env, "after-write");
}

/* --- workload --- */

/* In the middle of the work. False: an extension was refused, so the lock is lost. */
static bool workload_operate(struct client *client, const struct step *step, bool *entered) {
    struct step_result entry = {.outcome = OUTCOME_UNKNOWN}, renewed = {.outcome = OUTCOME_UNKNOWN};
    if (client->reenters) client_acquire(client, step, &entry);
    *entered = client->reenters && entry.outcome == OUTCOME_OK;
    if (client->extends) client_renew(client, &renewed);
    return renewed.outcome != OUTCOME_REFUSED;
}

/* Between read and write. False: the lock is lost. */
static bool workload_work(struct client *client, const struct step *step) {
    struct step_result left = {.outcome = OUTCOME_UNKNOWN};
    bool entered;
    if (!client->extends && !client->reenters) {
        env_sleep(client->env, step->work_ms);
        return true;
    }
    env_sleep(client->env, step->work_ms / 2);
    bool holds = workload_operate(client, step, &entered);
    if (holds) env_sleep(client->env, step->work_ms - step->work_ms / 2);
    if (entered) client_release(client, &left);
    return holds && left.outcome != OUTCOME_REFUSED;
}

/* One read-modify-write under the lock. A refused write ends the turn like an accepted one: a lock promises only a
 * place in the critical section. False: the lock was not granted. */
static bool workload_turn(struct client *client, const struct step *step, struct step_result *result) {
    client_acquire(client, step, result);
    if (result->outcome != OUTCOME_OK) return false;
    client_read(client, step->object, result);
    if (result->outcome == OUTCOME_OK) {
        int64_t value = result->value;
        if (workload_work(client, step)) client_write(client, "SET", step->object, value + step->value, result);
    }
    struct step_result written = *result;
    client_release(client, result);
    *result = written;
    return true;
}

/* How one client's workload differs from another's. */
struct workload_draws {
    struct random random;
    int64_t patience_ms;
};

static struct workload_draws workload_draws_begin(struct client *client, const struct step *step) {
    struct workload_draws draws = {.patience_ms = step->wait_ms};
    if (!step->varied) return draws; /* the lock's own random numbers are those that follow */
    draws.random.state = env_random_below(client->env, UINT64_MAX);
    if (step->varied & STEP_VARIES_PATIENCE)
        draws.patience_ms = drawn_patience_ms(&draws.random, step->lease_ms, step->wait_ms);
    return draws;
}

/* The step of one turn. `last`: the turn that ends the workload once it is granted. */
static struct step client_workload_draw(struct client *client, const struct step *step, struct workload_draws *draws,
                                        bool last) {
    struct step turn = *step;
    if (!step->varied) return turn;
    turn.wait_ms = last ? step->wait_ms : draws->patience_ms;
    if (step->varied & STEP_VARIES_WORK) turn.work_ms = drawn_work_ms(&draws->random, step->lease_ms, step->renews);
    client->extends = step->varied & STEP_VARIES_RENEWAL && drawn_one_in(&draws->random, 3);
    client->reenters = step->varied & STEP_VARIES_REENTRY && drawn_one_in(&draws->random, 3);
    return turn;
}

/* Between two turns: at least a millisecond, or a workload without work would never let virtual time pass. */
static void workload_pause(struct client *client, const struct step *step, struct workload_draws *draws) {
    if (step->varied & STEP_VARIES_WORK && drawn_one_in(&draws->random, 4))
        env_sleep(client->env, 1 + drawn_ms(&draws->random, step->lease_ms));
    else env_sleep(client->env, 1 + (int64_t)env_random_below(client->env, 2 * (uint64_t)step->think_ms + 1));
}

static void client_workload(struct client *client, const struct step *step, struct step_result *result) {
    int64_t until_ns = step->duration_ms ? env_mono_ns(client->env) + step->duration_ms * ENV_NS_PER_MS : INT64_MAX;
    struct workload_draws draws = workload_draws_begin(client, step);
    uint32_t turns = 0;
    bool done = false;
    for (int64_t turn = 0; !done && (step->turns == 0 || turn < step->turns); turn++) {
        if (env_mono_ns(client->env) >= until_ns) break;
        bool last = atomic_load_explicit(&client->place->last_turn, memory_order_acquire);
        struct step drawn = client_workload_draw(client, step, &draws, last);
        bool granted = workload_turn(client, &drawn, result);
        turns += granted;
        done = last && granted;
        if (step->turns == 0 && !done) workload_pause(client, step, &draws);
    }
    result->turns = turns;
}

/* Acquires and releases, without the resource, until `turns` attempts are made or the history is full. Sleeps are whole
 * milliseconds, so at a fast pace the attempts that fell due meanwhile come in bursts. */
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
    case STEP_IS_HELD: client_ask_held(client, result); break;
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
                                         .name = client->lock_name,
                                         .value = traits & LOCK_TRAIT_LEASE ? options->lease_ms : 0,
                                         .extra = (int64_t)traits,
                                         .token = capacity == LOCK_CAPACITY_ASKED ? options->permits : capacity});
    return opened;
}
