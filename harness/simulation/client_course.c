#include "harness/simulation/world.h"

#include "harness/client/drawn_work.h"
#include "harness/scheduler/clock.h"

/* What a client of the explorer does with its lock: turns, each of them an acquire, a read-modify-write of a counter
 * with work in between, and a release. What world_settings.varied names is drawn from the schedule's seed, from a
 * stream of its own: the random numbers of the lock stay the same. */

enum { COURSE_STREAM = 2000, LONG_STREAM = 3000, LINGER_BOUNDS = 2 };
enum { LONG_OF = 24, LONG_LEASES = 5 }; /* a watchdog may not go on for ever */

static const struct world_settings *settings_of(const struct explored_client *client) {
    return &client->worker.world->settings;
}

static bool varies(const struct explored_client *client, enum world_varied part) {
    return settings_of(client)->varied & (unsigned)part;
}

static bool drawn(struct explored_client *client, uint64_t of) {
    return drawn_one_in(&client->course.random, of);
}

/* --- what is drawn --- */

static bool client_renews(const struct explored_client *client) {
    return client->work.lock.traits & LOCK_TRAIT_RENEWS && !settings_of(client)->fixed_lease;
}

static int64_t work_ms(struct explored_client *client) {
    const struct world_settings *settings = settings_of(client);
    if (!varies(client, WORLD_VARIES_WORK)) return drawn(client, 2) ? 0 : settings->work_ms;
    if (client->course.holds_long && client_renews(client)) return LONG_LEASES * settings->lease_ms;
    return drawn_work_ms(&client->course.random, settings->lease_ms, client_renews(client));
}

void client_course_begin(struct explored_client *client, uint64_t seed) {
    uint64_t number = (uint64_t)(client->worker.number / TASKS_PER_CLIENT);
    struct random rare = random_split(seed, LONG_STREAM + number);
    client->course = (struct client_course){.random = random_split(seed, COURSE_STREAM + number),
                                            .holds_long = drawn_one_in(&rare, LONG_OF)};
}

/* --- turns --- */

static void turns_make(struct explored_client *client, int64_t wait_ms, int64_t work, int64_t turns) {
    const struct step step = {.kind = STEP_WORKLOAD,
                              .object = HISTORY_OBJECT_COUNTER,
                              .wait_ms = wait_ms,
                              .value = 1,
                              .work_ms = work,
                              .turns = turns};
    struct step_result result = {.outcome = OUTCOME_UNKNOWN};
    client_step(&client->work, &step, &result);
}

static void turn(struct explored_client *client) {
    bool operates = varies(client, WORLD_VARIES_OPERATIONS);
    int64_t work = work_ms(client);
    client->work.extends =
        settings_of(client)->extends || (operates && client->work.lock.type->renew && drawn(client, 3));
    client->work.reenters = operates && client->work.lock.traits & LOCK_TRAIT_REENTRANT && drawn(client, 3);
    turns_make(client, client->course.patience_ms, work, 1);
}

/* Until when a fault lasts that makes something late; or 0. */
static int64_t late_until_ns(const struct world *world) {
    int64_t until_ns = 0;
    for (int each = 0; each < world->late_count; each++)
        if (world->late[each].bytes && world->late[each].held_until_ns >= until_ns)
            until_ns = world->late[each].held_until_ns + 1;
    for (int number = 0; number < TASKS_PER_CLIENT * world->client_count; number++) {
        const struct explored_task *task = world_task_const(world, number);
        const struct explored_client *other = &world->clients[number / TASKS_PER_CLIENT];
        if (other->gone) continue;
        if (task->state == EXPLORED_TASK_SENDING && task->held_until_ns > until_ns) until_ns = task->held_until_ns;
        if (other->paused_until_ns > until_ns) until_ns = other->paused_until_ns;
    }
    return until_ns;
}

/* What comes late may harm somebody who comes later still. */
static void await_late(struct explored_client *client) {
    for (int64_t until_ns; !client->gone && (until_ns = late_until_ns(client->worker.world)) > 0;) {
        int64_t left_ms = (until_ns - world_now_ns(client->worker.world)) / CLOCK_NS_PER_MS;
        env_sleep(&client->worker.env, left_ms > 0 ? left_ms : 1);
    }
}

/* --- all clients do the same --- */

static void plain_run(struct explored_client *client) {
    const struct world_settings *settings = settings_of(client);
    /* Work takes time, in which all others run until they wait; without work they are still on their way. */
    bool works = env_random_below(&client->worker.env, 2) > 0;
    /* Waiters of one patience give up in the order in which they asked: first the head of the queue. */
    bool gives_up = settings->in_order && env_random_below(&client->worker.env, 2) > 0;
    bool sooner = settings->wait_ms < 0 || settings->work_ms < settings->wait_ms;
    int64_t wait_ms = gives_up && sooner ? settings->work_ms : settings->wait_ms;
    turns_make(client, wait_ms, works ? settings->work_ms : 0, settings->turns);
}

static void varied_run(struct explored_client *client) {
    int64_t lease_ms = settings_of(client)->lease_ms, turns = settings_of(client)->turns;
    int64_t wait_ms = settings_of(client)->wait_ms;
    client->course.patience_ms =
        varies(client, WORLD_VARIES_PATIENCE) ? drawn_patience_ms(&client->course.random, lease_ms, wait_ms) : wait_ms;
    if (varies(client, WORLD_VARIES_TURNS)) turns = drawn(client, 4) ? 2 : 1;
    for (int64_t each = 0; each < turns && !client->gone; each++) {
        if (varies(client, WORLD_VARIES_OPERATIONS) && drawn(client, 2))
            env_sleep(&client->worker.env, drawn_ms(&client->course.random, lease_ms));
        turn(client);
    }
    if (varies(client, WORLD_VARIES_TURNS)) {
        await_late(client);
        turn(client);
    }
}

void client_course_run(struct explored_client *client) {
    const struct world_settings *settings = settings_of(client);
    if (settings->varied) varied_run(client);
    else plain_run(client);
    /* A process outlives its work. Its watchdog may keep running, and others may wait for that in vain. */
    int64_t renewed_ms = client_renews(client) ? settings->lease_ms : 0;
    env_sleep(&client->worker.env, settings->bound_ms ? LINGER_BOUNDS * settings->bound_ms : renewed_ms);
}
