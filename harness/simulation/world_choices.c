#include "harness/simulation/world.h"

#include "harness/scheduler/clock.h"

/* --- steps --- */

static bool explored_task_enabled(const struct world *world, int number) {
    const struct explored_client *client = &world->clients[number / TASKS_PER_CLIENT];
    const struct explored_task *task = world_task_const(world, number);
    if (client->gone || task->state == EXPLORED_TASK_ABSENT) return false;
    if (task->state == EXPLORED_TASK_SENDING && task->held_until_ns <= world_now_ns(world)) return true;
    return !client->paused_until_ns && explored_task_can_resume(task, world_now_ns(world));
}

static bool late_enabled(const struct world *world, int number) {
    const struct late_command *late = &world->late[number];
    return late->bytes && late->held_until_ns <= world_now_ns(world);
}

static bool stream_waits(const struct world *world, int node, int server) {
    const struct explored_node *at = &world->nodes[node];
    return replica_follows(world, node, server) && at->streams[at->leads][server].length > 0;
}

static bool stream_enabled(const struct world *world, int number) {
    int node = replica_node(number), server = replica_server(number);
    return stream_waits(world, node, server) && world->nodes[node].stalled_until_ns[server] <= world_now_ns(world);
}

static int64_t sooner(int64_t one_ns, int64_t other_ns, int64_t now) {
    return other_ns > now && other_ns < one_ns ? other_ns : one_ns;
}

static int64_t explored_task_deadline_ns(const struct explored_task *task, bool paused, int64_t now) {
    int64_t until_ns = INT64_MAX;
    if (task->state == EXPLORED_TASK_ABSENT) return until_ns;
    if (task->state == EXPLORED_TASK_SENDING) until_ns = sooner(until_ns, task->held_until_ns, now);
    if (task->state == EXPLORED_TASK_AWAITING) {
        until_ns = sooner(until_ns, task->blocked_until_ns, now);
        until_ns = sooner(until_ns, task->reply_held_until_ns, now);
    }
    return paused ? until_ns : sooner(until_ns, task->deadline_ns, now);
}

int64_t world_next_deadline_ns(const struct world *world) {
    int64_t now = world_now_ns(world), until_ns = INT64_MAX;
    for (int each = 0; each < world->client_count; each++) {
        const struct explored_client *client = &world->clients[each];
        if (client->gone) continue;
        bool paused = client->paused_until_ns != 0;
        if (paused) until_ns = sooner(until_ns, client->paused_until_ns, now);
        until_ns = sooner(until_ns, explored_task_deadline_ns(&client->worker, paused, now), now);
        until_ns = sooner(until_ns, explored_task_deadline_ns(&client->watchdog, paused, now), now);
    }
    for (int node = 0; node < world->settings.nodes; node++)
        for (int server = 1; server <= world->settings.replicas; server++)
            if (stream_waits(world, node, server))
                until_ns = sooner(until_ns, world->nodes[node].stalled_until_ns[server], now);
    for (int each = 0; each < world->late_count; each++)
        if (world->late[each].bytes) until_ns = sooner(until_ns, world->late[each].held_until_ns, now);
    return until_ns;
}

int world_choices(struct search_world *search, struct choice *choices) {
    const struct world *world = world_of(search);
    int count = 0;
    for (int number = 0; number < TASKS_PER_CLIENT * world->client_count; number++)
        if (explored_task_enabled(world, number)) choices[count++] = (struct choice){CHOICE_TASK, number, 0};
    for (int number = 0; number < world->late_count; number++)
        if (late_enabled(world, number)) choices[count++] = (struct choice){CHOICE_LATE, number, 0};
    for (int server = 1; server <= world->settings.replicas; server++)
        for (int node = 0; node < world->settings.nodes; node++)
            if (stream_enabled(world, replica_number(node, server)))
                choices[count++] = (struct choice){CHOICE_STREAM, replica_number(node, server), 0};
    if (count == 0 && world_next_deadline_ns(world) != INT64_MAX)
        choices[count++] = (struct choice){.kind = CHOICE_CLOCK};
    return count;
}

/* --- faults --- */

/* Without it a schedule of many long faults would count beyond 64 bits of nanoseconds: 31 years. */
static const int64_t TIME_MOST_NS = 1000000000000000000;

/* Whether something can last for `amount_ms` from now on. */
static bool fits_in_time(const struct world *world, int64_t amount_ms) {
    return amount_ms > 0 && amount_ms <= (TIME_MOST_NS - world_now_ns(world)) / CLOCK_NS_PER_MS;
}

static bool fits_in_clock(int64_t offset_ns, int64_t step_ms) {
    int64_t most_ms = TIME_MOST_NS / CLOCK_NS_PER_MS, offset_ms = offset_ns / CLOCK_NS_PER_MS;
    return step_ms >= -most_ms - offset_ms && step_ms <= most_ms - offset_ms;
}

/* Whether it is a task of a client that is there. */
static bool is_task(const struct world *world, int number) {
    return number >= 0 && number < TASKS_PER_CLIENT * world->client_count &&
           !world->clients[number / TASKS_PER_CLIENT].gone;
}

static bool is_on_its_way(const struct world *world, int number) {
    if (!is_task(world, number)) return false;
    const struct explored_task *task = world_task_const(world, number);
    return task->state == EXPLORED_TASK_SENDING && task->command.kind == COMMAND_REQUEST && !task->held_until_ns;
}

static bool client_lives(const struct world *world, int number) {
    if (number < 0 || number >= world->client_count) return false;
    return !world->clients[number].gone && !world->clients[number].done;
}

static bool is_about_to_send(const struct world *world, int number) {
    if (!client_lives(world, number) || world->clients[number].paused_until_ns) return false;
    return is_on_its_way(world, number * TASKS_PER_CLIENT) || is_on_its_way(world, number * TASKS_PER_CLIENT + 1);
}

static bool is_node(const struct world *world, int number) {
    return number >= 0 && number < world->settings.nodes;
}

/* A replica would take its place. */
static bool can_be_down(const struct world *world, int number) {
    int down = 0;
    for (int node = 0; node < world->settings.nodes; node++) down += world->nodes[node].down != CHOICE_NONE;
    return is_node(world, number) && !world->nodes[number].down && world->settings.replicas == 0 &&
           choice_leaves_majority(world->settings.nodes, down);
}

static bool server_clock_jumps(const struct world *world, int number, int64_t step_ms) {
    if (!is_node(world, number)) return false;
    const struct explored_node *node = &world->nodes[number];
    return fits_in_clock(node->servers[node->leads].offset_ns, step_ms);
}

static bool is_following(const struct world *world, int number) {
    return number >= 0 && replica_follows(world, replica_node(number), replica_server(number));
}

/* Whether no pause, held request, late command or stalled replica lasts any more. */
static bool no_fault_lasts(const struct world *world) {
    for (int number = 0; number < TASKS_PER_CLIENT * world->client_count; number++) {
        const struct explored_client *client = &world->clients[number / TASKS_PER_CLIENT];
        const struct explored_task *task = world_task_const(world, number);
        if (task->state == EXPLORED_TASK_SENDING && task->held_until_ns) return false;
        if (task->state == EXPLORED_TASK_AWAITING && task->reply_held_until_ns > world_now_ns(world)) return false;
        if (client->paused_until_ns && !client->gone) return false;
    }
    for (int each = 0; each < world->late_count; each++)
        if (world->late[each].bytes) return false;
    for (int node = 0; node < world->settings.nodes; node++)
        for (int server = 1; server <= world->settings.replicas; server++)
            if (world->nodes[node].stalled_until_ns[server] > world_now_ns(world)) return false;
    return true;
}

bool world_allows(const struct search_world *search, struct choice choice) {
    const struct world *world = world_of(search);
    int who = choice.who;
    if (world->quiet && (int)choice.kind >= CHOICE_FAULTS_FROM) return false;
    switch (choice.kind) {
    case CHOICE_TASK:
        return who >= 0 && who < TASKS_PER_CLIENT * world->client_count && explored_task_enabled(world, who);
    case CHOICE_LATE: return who >= 0 && who < world->late_count && late_enabled(world, who);
    case CHOICE_PAUSE:
        return client_lives(world, who) && !world->clients[who].paused_until_ns && fits_in_time(world, choice.amount);
    case CHOICE_PAUSE_BEFORE_SEND: return is_about_to_send(world, who) && fits_in_time(world, choice.amount);
    case CHOICE_CRASH: return client_lives(world, who);
    case CHOICE_CLIENT_CLOCK_JUMP:
        return client_lives(world, who) &&
               fits_in_clock(atomic_load(&world->clients[who].work.place->wall_offset_ns), choice.amount);
    case CHOICE_STREAM: return is_following(world, who) && stream_enabled(world, who);
    case CHOICE_FAILOVER: return is_following(world, who) && !world->nodes[replica_node(who)].leads;
    case CHOICE_STALL_REPLICA: return is_following(world, who) && fits_in_time(world, choice.amount);
    case CHOICE_CLOCK_JUMP: return server_clock_jumps(world, who, choice.amount);
    case CHOICE_RESTART:
    case CHOICE_RESTART_EMPTY: return is_node(world, who) && !world->nodes[who].down;
    case CHOICE_SERVER_DOWN:
    case CHOICE_SERVER_SILENT: return can_be_down(world, who);
    case CHOICE_DUPLICATE_REQUEST: return is_on_its_way(world, who) && world->late_count < WORLD_LATE;
    case CHOICE_QUIET: return !world->quiet && no_fault_lasts(world);
    case CHOICE_LOSE_MESSAGE: return is_task(world, who) && world_message_node(world, who) >= 0;
    case CHOICE_ERROR_REPLY:
        return is_on_its_way(world, who) && world_task_const(world, who)->command.node != WORLD_RESOURCE;
    case CHOICE_LOSE_REPLY:
    case CHOICE_DROP_REQUEST: return is_on_its_way(world, who);
    case CHOICE_HOLD_REPLY:
    case CHOICE_HOLD_REQUEST: return is_on_its_way(world, who) && fits_in_time(world, choice.amount);
    case CHOICE_CLOCK: {
        struct choice choices[WORLD_CHOICES];
        return world_choices((struct search_world *)(uintptr_t)search, choices) == 1 && choices[0].kind == CHOICE_CLOCK;
    }
    default: return false;
    }
}
