#include "checkers/promises/promise_rule.h"

bool disturbs_client(const struct promise_disturbance *disturbance, const struct promise_client *client) {
    bool late = disturbance->event->kind == EVENT_LATE;
    return disturbance->event->client == client->client || (!late && disturbance->event->client == ANY_SERVER);
}

bool is_hard(const struct call_event *event) {
    return event->kind == EVENT_FAULT && event->effect != FAULT_STILL && event->effect != FAULT_DOUBLE;
}

/* PROMISE_ALWAYS: it was hard, or has no end. */
static int64_t lasted_ns(const struct promise_disturbance *disturbance, int64_t from_ns, int64_t to_ns) {
    const struct call_event *event = disturbance->event;
    int64_t begin_ns = latest(event->at_ns, from_ns);
    int64_t end_ns = disturbance->until_ns < to_ns ? disturbance->until_ns : to_ns;
    if (disturbance->until_ns < from_ns || event->at_ns > to_ns) return 0;
    if (is_hard(event) || disturbance->until_ns == PROMISE_ALWAYS) return PROMISE_ALWAYS;
    if (event->kind == EVENT_FAULT && event->effect == FAULT_DOUBLE) return 0; /* nothing waits for the second one */
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static int64_t sum_ns(int64_t one_ns, int64_t other_ns) {
    int64_t both_ns;
    if (one_ns == PROMISE_ALWAYS || other_ns == PROMISE_ALWAYS) return PROMISE_ALWAYS;
    return __builtin_add_overflow(one_ns, other_ns, &both_ns) ? PROMISE_ALWAYS : both_ns;
}

int64_t disturbed_ns(const struct promise_pass *pass, const struct promise_client *client, int64_t from_ns,
                     int64_t to_ns) {
    int64_t sum = 0;
    for (uint32_t at = 0; at < pass->disturbance_count; at++)
        if (disturbs_client(&pass->disturbances[at], client))
            sum = sum_ns(sum, lasted_ns(&pass->disturbances[at], from_ns, to_ns));
    return sum;
}

int64_t held_up_ns(const struct promise_pass *pass, const struct promise_client *client, int64_t from_ns,
                   int64_t to_ns) {
    int64_t sum = disturbed_ns(pass, client, from_ns, to_ns);
    for (uint32_t at = 0; pass->facts->transactions && at < pass->disturbance_count; at++) {
        const struct promise_disturbance *each = &pass->disturbances[at];
        bool late = !is_hard(each->event) && each->until_ns != PROMISE_ALWAYS;
        if (late && !disturbs_client(each, client)) sum = sum_ns(sum, lasted_ns(each, from_ns, to_ns));
    }
    return sum;
}

int64_t disturbances_end_ns(const struct promise_pass *pass, const struct promise_client *client) {
    int64_t end_ns = INT64_MIN;
    for (uint32_t at = 0; at < pass->disturbance_count; at++)
        if (disturbs_client(&pass->disturbances[at], client)) end_ns = latest(end_ns, pass->disturbances[at].until_ns);
    return end_ns;
}

bool is_disturbed(const struct promise_pass *pass, const struct promise_client *client) {
    return disturbances_end_ns(pass, client) > pass->now_ns;
}

bool lost_only_replies(const struct promise_pass *pass, const struct promise_call *call) {
    uint32_t lost = 0;
    for (uint32_t at = 0; at < pass->disturbance_count; at++) {
        const struct promise_disturbance *each = &pass->disturbances[at];
        bool over = at < call->disturbances && each->until_ns <= call->ask->at_ns;
        if (over || !disturbs_client(each, call->owner->client)) continue;
        if (each->event->kind != EVENT_FAULT || each->event->effect != FAULT_LOST || !each->event->reply) return false;
        lost++;
    }
    return lost > 0;
}

bool has_ended(const struct promise_client *client) {
    return client->ended_ns != PROMISE_ALWAYS;
}

bool may_have_missed(const struct promise_client *client) {
    return client->lost_message || client->closed_connection;
}

bool servers_are_unreliable(const struct promise_pass *pass) {
    return pass->servers_failed || pass->clock || pass->data;
}

void doubt_holds(struct promise_owner *owner, const char *why) {
    owner->doubt = why;
    for (int mode = 0; mode < CALL_MODES; mode++) owner->least[mode] = 0;
    owner->doubts++;
}

static void doubt_client(struct promise_pass *pass, const struct promise_client *client, const char *why) {
    for (uint32_t at = 0; at < pass->owner_count; at++)
        if (pass->owners[at].client == client) doubt_holds(&pass->owners[at], why);
}

void doubt_client_until(struct promise_pass *pass, struct promise_client *client, int64_t until_ns) {
    client->late_release_ns = latest(client->late_release_ns, until_ns);
    doubt_client(pass, client, PROMISE_MAY_HAVE_ENDED);
}

void note_giving_back(struct promise_client *client) {
    client->may_give_back = true;
    client->late_release_ns = latest(client->late_release_ns, client->late_command_ns);
}

/* A command of the client may take effect until `until_ns`, also if the client has forgotten it. */
static void expect_late_command(struct promise_pass *pass, struct promise_client *client, int64_t until_ns) {
    client->late_command_ns = latest(client->late_command_ns, until_ns);
    if (client->may_give_back) doubt_client_until(pass, client, until_ns);
}

static void disturb_client(struct promise_pass *pass, struct promise_client *client, const struct call_event *event,
                           int64_t until_ns) {
    if (event->kind == EVENT_LATE) {
        if (!event->reply) expect_late_command(pass, client, until_ns);
        return;
    }
    switch (event->effect) {
    case FAULT_STILL: /* what came late waits until the client goes on */
        if (client->late_release_ns >= event->at_ns) doubt_client_until(pass, client, until_ns);
        break;
    case FAULT_GONE:
        client->ended_ns = event->at_ns;
        doubt_client(pass, client, "its client had ended");
        break;
    case FAULT_LOST: /* the library asks again, perhaps for what was executed already */
        client->lost_message = true;
        if (client->may_give_back) expect_late_command(pass, client, PROMISE_ALWAYS);
        break;
    case FAULT_ERROR: /* with its connection a client may lose its session */
        client->lost_message = true;
        doubt_client(pass, client, "a command of its client was answered with an error, or its connection ended");
        if (client->may_give_back) expect_late_command(pass, client, PROMISE_ALWAYS);
        break;
    case FAULT_DOUBLE:
        expect_late_command(pass, client, until_ns);
        doubt_client_until(pass, client, until_ns);
        break;
    case FAULT_CLOCK: doubt_client(pass, client, "the clock of its client was set"); break;
    case FAULT_DOWN:
    case FAULT_SILENT: /* a majority that was just enough may be less now */
        client->lost_message = true;
        doubt_client(pass, client, PROMISE_SERVER_DOWN);
        break;
    case FAULT_DATA:
    case FAULT_CUT: break;
    }
}

static void disturb_all_clients(struct promise_pass *pass, const struct call_event *event, int64_t until_ns) {
    pass->servers_failed |= event->effect != FAULT_STILL;
    pass->servers_lost |= event->effect == FAULT_LOST;
    for (struct promise_client *client = pass->clients; client < pass->clients + pass->client_count; client++) {
        if (event->effect == FAULT_STILL) expect_late_command(pass, client, until_ns);
        else if (event->effect != FAULT_GONE) disturb_client(pass, client, event, until_ns);
        /* A library that has no connection keeps a command until it has one again. */
        if (event->effect == FAULT_LOST) expect_late_command(pass, client, PROMISE_ALWAYS);
    }
}

/* A call on that connection may be answered as late as the client's own timeout. Messages of the server on it, as one
 * that wakes a waiter, may be lost. */
static void close_connection(struct promise_pass *pass, const struct call_event *event) {
    client_of(pass, event->client)->closed_connection = true;
    for (struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        if (call->ask && !call->answer && call->owner->client->client == event->client) call->connection_closed = true;
    }
}

void disturbance_take(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    bool fault = event->kind == EVENT_FAULT;
    if (fault && event->effect == FAULT_CUT) {
        close_connection(pass, event);
        return;
    }
    int64_t until_ns = latest(event->until_ns, event->at_ns);
    /* A late message that never arrives is a lost one. */
    struct call_event lost = {
        .kind = EVENT_FAULT, .at_ns = event->at_ns, .effect = FAULT_LOST, .client = event->client};
    bool never = !fault && event->until_ns == LATE_FOR_EVER;
    struct promise_disturbance *disturbance = &pass->disturbances[pass->disturbance_count++];
    *disturbance = (struct promise_disturbance){event, until_ns};
    pass->clock |= fault && event->effect == FAULT_CLOCK;
    pass->server_clock |= fault && event->effect == FAULT_CLOCK && event->client == ANY_SERVER;
    pass->data |= fault && event->effect == FAULT_DATA;
    pass->silent |= fault && event->effect == FAULT_SILENT;
    if (fault && (event->effect == FAULT_DOWN || event->effect == FAULT_SILENT)) {
        pass->servers_down++;
        pass->down = pass->now;
    }
    if (fault && event->client == ANY_SERVER) disturb_all_clients(pass, event, until_ns);
    else disturb_client(pass, client_of(pass, event->client), never ? &lost : event, until_ns);
    for (struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        if (call->ask && !call->answer && disturbs_client(disturbance, call->owner->client)) call->disturbed = true;
    }
}
