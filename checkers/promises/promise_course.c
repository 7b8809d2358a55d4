#include "checkers/promises/promise_course.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool course_open(struct promise_course *course, const struct library_facts *facts, const struct call_event *events,
                 size_t count) {
    size_t room = count ? count : 1;
    *course = (struct promise_course){.facts = facts, .events = events, .count = count};
    course->calls = calloc(room, sizeof *course->calls);
    course->clients = calloc(room, sizeof *course->clients);
    course->owners = calloc(room, sizeof *course->owners);
    course->resources = calloc(room, sizeof *course->resources);
    course->strikes = calloc(room, sizeof *course->strikes);
    return course->calls && course->clients && course->owners && course->resources && course->strikes;
}

void course_close(struct promise_course *course) {
    free(course->calls);
    free(course->clients);
    free(course->owners);
    free(course->resources);
    free(course->strikes);
}

/* --- numbers --- */

int64_t ms_of(int64_t ns) {
    return ns == PROMISE_ALWAYS ? PROMISE_ALWAYS : ns / PROMISE_NS_PER_MS;
}

int64_t after_ms(int64_t from_ns, int64_t ms) {
    int64_t until_ns;
    if (from_ns == PROMISE_ALWAYS || ms == PROMISE_ALWAYS) return PROMISE_ALWAYS;
    if (__builtin_mul_overflow(ms, (int64_t)PROMISE_NS_PER_MS, &until_ns)) return PROMISE_ALWAYS;
    return __builtin_add_overflow(until_ns, from_ns, &until_ns) ? PROMISE_ALWAYS : until_ns;
}

int64_t lease_of_call(const struct promise_course *course, const struct call *call) {
    int64_t default_ms = course->facts->default_lease_ms > 0 ? course->facts->default_lease_ms : PROMISE_ALWAYS;
    if (call->lease == LEASE_GIVEN) return call->lease_ms;
    return call->lease == LEASE_ENDLESS ? PROMISE_ALWAYS : default_ms;
}

bool is_renewed(const struct call *call) {
    return call->verb == CALL_ACQUIRE && call->lease == LEASE_RENEWED;
}

int64_t grain_ms(const struct promise_course *course) {
    return 1 + (course->facts->lease_unit_ms > 1 ? course->facts->lease_unit_ms : 1);
}

int64_t timer_ms(const struct promise_course *course) {
    return course->facts->timer_ms > 1 ? course->facts->timer_ms : 1;
}

int majority_of(const struct promise_course *course) {
    return course->facts->nodes > 1 ? course->facts->nodes / 2 + 1 : 1;
}

/* A timer of the watchdog may be late by half its period, and by as much as any timer of the library. */
int64_t watchdog_spare_ms(const struct promise_course *course) {
    int64_t lease_ms = course->facts->default_lease_ms;
    int64_t divisor = course->facts->watchdog_divisor > 0 ? course->facts->watchdog_divisor : 3;
    int64_t late_ms = lease_ms / (2 * divisor);
    if (late_ms < timer_ms(course)) late_ms = timer_ms(course);
    int64_t spare_ms = lease_ms - lease_ms / divisor - late_ms;
    return spare_ms > 0 ? spare_ms : 0;
}

/* --- who --- */

static struct promise_client *client_of(struct promise_course *course, int number) {
    for (uint32_t at = 0; at < course->client_count; at++)
        if (course->clients[at].client == number) return &course->clients[at];
    struct promise_client *client = &course->clients[course->client_count++];
    *client = (struct promise_client){
        .client = number, .gone_ns = PROMISE_ALWAYS, .harm_ns = INT64_MIN, .ghost_ns = INT64_MIN};
    if (course->servers_lost) client->cut = true, client->ghost_ns = PROMISE_ALWAYS;
    for (int node = 0; node < PROMISE_NODES_MOST; node++) client->executed_ns[node] = INT64_MIN;
    return client;
}

struct promise_resource *resource_known(const struct promise_course *course, int number) {
    for (uint32_t at = 0; at < course->resource_count; at++)
        if (course->resources[at].resource == number) return &course->resources[at];
    return NULL;
}

struct promise_resource *course_resource(struct promise_course *course, int number) {
    struct promise_resource *resource = resource_known(course, number);
    if (resource) return resource;
    resource = &course->resources[course->resource_count++];
    *resource = (struct promise_resource){.resource = number, .absent_ns = INT64_MIN, .idle_ns = PROMISE_ALWAYS};
    return resource;
}

static struct promise_owner *owner_of(struct promise_course *course, const struct call *call) {
    struct promise_client *client = client_of(course, call->client);
    int thread = course->facts->owner == OWNER_OBJECT ? 0 : call->thread;
    int lock = course->facts->owner == OWNER_THREAD ? 0 : call->lock;
    for (uint32_t at = 0; at < course->owner_count; at++) {
        struct promise_owner *each = &course->owners[at];
        if (each->client == client && each->thread == thread && each->lock == lock && each->resource == call->resource)
            return each;
    }
    struct promise_owner *owner = &course->owners[course->owner_count++];
    *owner = (struct promise_owner){
        .thread = thread, .lock = lock, .resource = call->resource, .client = client, .touched_ns = INT64_MIN};
    return owner;
}

struct promise_call *course_answered(const struct promise_course *course) {
    const struct call_event *event = &course->events[course->now];
    if (event->call >= course->now || !course->calls[event->call].ask) return NULL;
    struct promise_call *call = &course->calls[event->call];
    return call->answer == course->now ? call : NULL;
}

bool is_under_way(const struct promise_call *call) {
    return call->ask && !call->answer;
}

/* --- strikes --- */

static bool strikes_client(const struct promise_strike *strike, const struct promise_client *client) {
    bool late = strike->event->kind == EVENT_LATE;
    return strike->event->client == client->client || (!late && strike->event->client == ANY_SERVER);
}

/* Whether it takes more than time. */
static bool is_hard(const struct call_event *event) {
    return event->kind == EVENT_FAULT && event->effect != FAULT_STILL && event->effect != FAULT_DOUBLE;
}

/* How long the strike lasted between the two; PROMISE_ALWAYS: it takes more than time, or has no end. */
static int64_t lasted_ns(const struct promise_strike *strike, int64_t from_ns, int64_t to_ns) {
    int64_t begin_ns = strike->event->at_ns > from_ns ? strike->event->at_ns : from_ns;
    int64_t end_ns = strike->until_ns < to_ns ? strike->until_ns : to_ns;
    if (strike->until_ns < from_ns || strike->event->at_ns > to_ns) return 0;
    if (is_hard(strike->event) || strike->until_ns == PROMISE_ALWAYS) return PROMISE_ALWAYS;
    if (strike->event->kind == EVENT_FAULT && strike->event->effect == FAULT_DOUBLE) return 0;
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static int64_t sum_ns(int64_t one_ns, int64_t other_ns) {
    int64_t both_ns;
    if (one_ns == PROMISE_ALWAYS || other_ns == PROMISE_ALWAYS) return PROMISE_ALWAYS;
    return __builtin_add_overflow(one_ns, other_ns, &both_ns) ? PROMISE_ALWAYS : both_ns;
}

int64_t struck_ns(const struct promise_course *course, const struct promise_client *client, int64_t from_ns,
                  int64_t to_ns) {
    int64_t struck = 0;
    for (uint32_t at = 0; at < course->strike_count; at++)
        if (strikes_client(&course->strikes[at], client))
            struck = sum_ns(struck, lasted_ns(&course->strikes[at], from_ns, to_ns));
    return struck;
}

int64_t held_up_ns(const struct promise_course *course, const struct promise_client *client, int64_t from_ns,
                   int64_t to_ns) {
    int64_t held_up = struck_ns(course, client, from_ns, to_ns);
    for (uint32_t at = 0; course->facts->transactions && at < course->strike_count; at++) {
        const struct promise_strike *strike = &course->strikes[at];
        bool late = !is_hard(strike->event) && strike->until_ns != PROMISE_ALWAYS;
        if (late && !strikes_client(strike, client)) held_up = sum_ns(held_up, lasted_ns(strike, from_ns, to_ns));
    }
    return held_up;
}

/* When the last strike on the client ends; INT64_MIN: there was none. */
static int64_t end_of_strikes(const struct promise_course *course, const struct promise_client *client) {
    int64_t end_ns = INT64_MIN;
    for (uint32_t at = 0; at < course->strike_count; at++)
        if (strikes_client(&course->strikes[at], client) && course->strikes[at].until_ns > end_ns)
            end_ns = course->strikes[at].until_ns;
    return end_ns;
}

bool may_have_missed(const struct promise_client *client) {
    return client->cut || client->has_cut;
}

bool is_struck(const struct promise_course *course, const struct promise_client *client) {
    return end_of_strikes(course, client) > course->now_ns;
}

/* Nothing is certain any more of the holds that the owner has. */
static void harm(struct promise_owner *owner) {
    for (int mode = 0; mode < CALL_MODES; mode++) owner->least[mode] = 0;
    owner->harms++;
}

static void harm_client(struct promise_course *course, const struct promise_client *client) {
    for (uint32_t at = 0; at < course->owner_count; at++)
        if (course->owners[at].client == client) harm(&course->owners[at]);
}

/* An earlier call of the client may end or shorten its holds until `until_ns`. */
static void harm_until(struct promise_course *course, struct promise_client *client, int64_t until_ns) {
    if (until_ns > client->harm_ns) client->harm_ns = until_ns;
    harm_client(course, client);
}

/* A command of the client may take effect until `until_ns`, also if the client has forgotten it. */
static void haunt(struct promise_course *course, struct promise_client *client, int64_t until_ns) {
    if (until_ns > client->ghost_ns) client->ghost_ns = until_ns;
    if (client->gives_back) harm_until(course, client, until_ns);
}

/* From now on a command that is late may be an earlier hold's: of its watchdog, or what gives it back. */
static void give_back(struct promise_client *client) {
    client->gives_back = true;
    if (client->ghost_ns > client->harm_ns) client->harm_ns = client->ghost_ns;
}

static void strike_client(struct promise_course *course, struct promise_client *client, const struct call_event *event,
                          int64_t until_ns) {
    if (event->kind == EVENT_LATE) {
        if (!event->reply) haunt(course, client, until_ns);
        return;
    }
    switch (event->effect) {
    case FAULT_STILL: /* what came late waits */
        if (client->harm_ns >= event->at_ns) harm_until(course, client, until_ns);
        break;
    case FAULT_GONE:
        client->gone_ns = event->at_ns;
        harm_client(course, client);
        break;
    case FAULT_LOST: /* the library asks again, perhaps for what was executed already */
        client->cut = true;
        if (client->gives_back) haunt(course, client, PROMISE_ALWAYS);
        break;
    case FAULT_ERROR: /* with its connection a client may lose its session */
        client->cut = true;
        harm_client(course, client);
        if (client->gives_back) haunt(course, client, PROMISE_ALWAYS);
        break;
    case FAULT_DOUBLE:
        haunt(course, client, until_ns);
        harm_until(course, client, until_ns);
        break;
    case FAULT_CLOCK:
    case FAULT_DATA:
    case FAULT_CUT: break;
    }
}

static void strike_server(struct promise_course *course, const struct call_event *event, int64_t until_ns) {
    course->server_cut |= event->effect != FAULT_STILL;
    course->servers_lost |= event->effect == FAULT_LOST;
    for (uint32_t at = 0; at < course->client_count; at++) {
        struct promise_client *client = &course->clients[at];
        if (event->effect == FAULT_STILL) haunt(course, client, until_ns);
        else if (event->effect != FAULT_GONE) strike_client(course, client, event, until_ns);
        /* A library that has no connection keeps a command until it has one again. */
        if (event->effect == FAULT_LOST) haunt(course, client, PROMISE_ALWAYS);
    }
}

/* What the client has asked on that connection may be answered when its own patience ends; what the server told it
 * there, as a message to its waiters, may be lost with the connection. */
static void take_cut(struct promise_course *course, const struct call_event *event) {
    client_of(course, event->client)->has_cut = true;
    for (uint32_t at = 0; at < course->count && at < course->now; at++) {
        struct promise_call *call = &course->calls[at];
        if (is_under_way(call) && call->owner->client->client == event->client) call->cut = true;
    }
}

static void take_strike(struct promise_course *course) {
    const struct call_event *event = &course->events[course->now];
    bool fault = event->kind == EVENT_FAULT;
    if (fault && event->effect == FAULT_CUT) {
        take_cut(course, event);
        return;
    }
    int64_t until_ns = event->until_ns > event->at_ns ? event->until_ns : event->at_ns;
    /* A late message that never comes is a lost one. */
    struct call_event lost = {
        .kind = EVENT_FAULT, .at_ns = event->at_ns, .effect = FAULT_LOST, .client = event->client};
    bool never = !fault && event->until_ns == LATE_FOR_EVER;
    course->strikes[course->strike_count++] = (struct promise_strike){event, until_ns};
    course->clock |= fault && event->effect == FAULT_CLOCK;
    course->data |= fault && event->effect == FAULT_DATA;
    if (fault && event->client == ANY_SERVER) strike_server(course, event, until_ns);
    else strike_client(course, client_of(course, event->client), never ? &lost : event, until_ns);
    for (uint32_t at = 0; at < course->count && at < course->now; at++) {
        struct promise_call *call = &course->calls[at];
        if (is_under_way(call) && strikes_client(&course->strikes[course->strike_count - 1], call->owner->client))
            call->struck = true;
    }
}

/* --- holds --- */

bool may_hold(const struct promise_owner *owner) {
    int sum = 0;
    for (int mode = 0; mode < CALL_MODES; mode++) sum += owner->most[mode];
    return sum > 0;
}

/* Whether the client lost a message while it kept another hold: one watchdog may keep both, and wait for an answer. */
static bool watchdog_may_wait(const struct promise_course *course, const struct promise_owner *owner) {
    for (uint32_t each = 0; each < course->owner_count; each++) {
        const struct promise_owner *other = &course->owners[each];
        if (other == owner || other->client != owner->client || !other->watched || !may_hold(other)) continue;
        for (uint32_t at = 0; at < course->strike_count; at++) {
            const struct promise_strike *strike = &course->strikes[at];
            bool since = strike->event >= &course->events[other->began];
            if (since && is_hard(strike->event) && strikes_client(strike, owner->client)) return true;
        }
    }
    return false;
}

/* Whether the hold that the owner was granted lasts. */
static bool lasts(const struct promise_course *course, const struct promise_owner *owner) {
    if (course->clock || course->data) return false;
    if (owner->end_ns != PROMISE_ALWAYS && course->now_ns >= owner->end_ns) return false;
    if (!owner->renewed) return true;
    if (watchdog_may_wait(course, owner)) return false;
    int64_t lost_ns = struck_ns(course, owner->client, owner->since_ns, PROMISE_ALWAYS);
    return ms_of(lost_ns) <= watchdog_spare_ms(course);
}

bool holds_in_mode(const struct promise_course *course, const struct promise_owner *owner, enum call_mode mode) {
    return owner->least[mode] > 0 && lasts(course, owner);
}

bool holds_certainly(const struct promise_course *course, const struct promise_owner *owner) {
    for (int mode = 0; mode < CALL_MODES; mode++)
        if (owner->least[mode] > 0) return lasts(course, owner);
    return false;
}

/* Until when a lease certainly lasts that was asked for now. */
static int64_t end_of_lease(const struct promise_course *course, const struct call_event *ask) {
    int64_t lease_ms = lease_of_call(course, &ask->asked);
    if (lease_ms == PROMISE_ALWAYS || is_renewed(&ask->asked)) return PROMISE_ALWAYS;
    return after_ms(ask->at_ns, lease_ms - grain_ms(course));
}

/* The same while the call is under way: until the watchdog runs, its lease has an end. */
static int64_t end_under_way(const struct promise_course *course, const struct promise_owner *owner,
                             const struct call_event *ask) {
    if (!is_renewed(&ask->asked)) return end_of_lease(course, ask);
    int64_t lease_ms = lease_of_call(course, &ask->asked);
    if (owner->renewed || lease_ms == PROMISE_ALWAYS) return PROMISE_ALWAYS;
    return after_ms(ask->at_ns, lease_ms - grain_ms(course));
}

static bool takes_lease(const struct call_event *ask) {
    return ask->asked.verb == CALL_ACQUIRE || ask->asked.verb == CALL_RENEW;
}

/* The end of the granted call's lease, or an earlier one of the owner's calls that are under way or were asked since: a
 * server may have heard of them later. */
static int64_t end_beside_others(const struct promise_course *course, const struct promise_call *call) {
    int64_t end_ns = end_of_lease(course, call->ask);
    for (uint32_t at = call->owner->began; at < course->now; at++) {
        const struct promise_call *each = &course->calls[at];
        if (!each->ask || each->owner != call->owner || !takes_lease(each->ask)) continue;
        if (each->answer && each->ask <= call->ask) continue;
        int64_t other_ns = end_under_way(course, call->owner, each->ask);
        if (other_ns < end_ns && each != call) end_ns = other_ns;
    }
    return end_ns;
}

static void ask_lease(struct promise_course *course, struct promise_call *call) {
    struct promise_resource *resource = course_resource(course, call->ask->asked.resource);
    int64_t end_ns = end_under_way(course, call->owner, call->ask);
    int64_t lease_ms = lease_of_call(course, &call->ask->asked);
    if (end_ns < call->owner->end_ns) call->owner->end_ns = end_ns;
    if (lease_ms != PROMISE_ALWAYS && lease_ms > resource->longest_ms) resource->longest_ms = lease_ms;
}

static void take_ask(struct promise_course *course) {
    const struct call_event *event = &course->events[course->now];
    const struct call *asked = &event->asked;
    struct promise_call *call = &course->calls[course->now];
    struct promise_resource *resource = course_resource(course, asked->resource);
    struct promise_owner *owner = owner_of(course, asked);
    *call = (struct promise_call){.ask = event, .owner = owner};
    call->certain = holds_in_mode(course, owner, asked->mode);
    call->alone = !may_hold(owner);
    call->nothing = call->alone && owner->pending == 0;
    call->crowded = owner->pending > 0;
    call->releasing = owner->releasing > 0;
    call->acquires = owner->acquires;
    call->releases = owner->releases;
    call->harms = owner->harms;
    call->strikes = course->strike_count;
    call->struck = is_struck(course, owner->client);
    call->token_floor = resource->token;
    call->token_from = resource->token_event;
    switch (asked->verb) {
    case CALL_ACQUIRE:
        if (call->nothing) owner->began = course->now;
        owner->watched = is_renewed(asked) || (owner->watched && !call->nothing);
        /* After a wait that timed out, or without a majority, a library takes back what it was granted. */
        if (asked->wait == WAIT_TIME || course->facts->nodes > 1) give_back(owner->client);
        owner->pending++;
        owner->acquires++;
        ask_lease(course, call);
        break;
    case CALL_RELEASE:
        give_back(owner->client);
        owner->releases++;
        owner->releasing++;
        if (owner->least[asked->mode] > 0) owner->least[asked->mode]--;
        /* The watchdog may have set a shorter lease than the grants asked for that stay without it. */
        if (owner->mixed) harm(owner);
        break;
    case CALL_RENEW:
        give_back(owner->client);
        ask_lease(course, call);
        break;
    case CALL_CANCEL:
        give_back(owner->client);
        if (asked->cancels < course->now && course->calls[asked->cancels].ask)
            course->calls[asked->cancels].cancelled = course->now;
        break;
    case CALL_IS_HELD:
    case CALL_WORK: break;
    }
}

static void note_token(struct promise_course *course, const struct promise_call *call) {
    struct promise_resource *resource = course_resource(course, call->ask->asked.resource);
    int64_t token = course->events[course->now].token;
    if (call->ask->asked.mode == MODE_READ || call->ask->asked.mode == MODE_PERMIT || token <= resource->token) return;
    resource->token = token;
    resource->token_event = course->now;
}

static void grant(struct promise_course *course, struct promise_call *call) {
    struct promise_owner *owner = call->owner;
    enum call_mode mode = call->ask->asked.mode;
    bool again = holds_certainly(course, owner), alone = call->alone && !may_hold(owner);
    owner->most[mode] += call->struck ? 2 : 1; /* asked for twice, it may have been granted twice */
    owner->grant[mode] = course->now;
    note_token(course, call);
    if (owner->client->harm_ns >= call->ask->at_ns || owner->client->gone_ns != PROMISE_ALWAYS) return;
    /* A release at the same time may have given back this grant. */
    if (call->releasing || call->releases != owner->releases) return;
    bool renewed = is_renewed(&call->ask->asked);
    if (!again && !alone && owner->watched) return; /* an older watchdog may shorten its lease, or be stuck */
    if (!again) {
        for (int each = 0; each < CALL_MODES; each++) owner->least[each] = 0;
        owner->since_ns = call->ask->at_ns;
        owner->end_ns = end_beside_others(course, call);
        owner->renewed = renewed;
        owner->mixed = !alone;
    }
    owner->mixed |= renewed != owner->renewed;
    owner->renewed |= renewed;
    owner->least[mode]++;
}

static void answer_acquire(struct promise_course *course, struct promise_call *call, const struct call_event *event) {
    struct promise_owner *owner = call->owner;
    owner->pending--;
    if (event->outcome == OUTCOME_OK) grant(course, call);
    else if (event->outcome == OUTCOME_UNKNOWN || call->struck) owner->most[call->ask->asked.mode]++;
    /* What the library has given up may come late, or be given back late. */
    int64_t struck_until_ns = end_of_strikes(course, owner->client);
    if (event->outcome != OUTCOME_OK && struck_until_ns > event->at_ns)
        harm_until(course, owner->client, struck_until_ns);
}

static void answer_release(struct promise_call *call, const struct call_event *event) {
    struct promise_owner *owner = call->owner;
    enum call_mode mode = call->ask->asked.mode;
    owner->releasing--;
    if (event->outcome == OUTCOME_OK && owner->most[mode] > 0) owner->most[mode]--;
    if (event->outcome == OUTCOME_REFUSED) harm(owner);
}

static void take_answer(struct promise_course *course) {
    const struct call_event *event = &course->events[course->now];
    if (event->call >= course->now || !is_under_way(&course->calls[event->call])) return;
    struct promise_call *call = &course->calls[event->call];
    struct promise_owner *owner = call->owner;
    call->answer = course->now;
    owner->touched_ns = event->at_ns;
    switch (call->ask->asked.verb) {
    case CALL_ACQUIRE: answer_acquire(course, call, event); break;
    case CALL_RELEASE: answer_release(call, event); break;
    case CALL_RENEW:
        if (event->outcome == OUTCOME_OK && !owner->renewed && call->certain && call->harms == owner->harms)
            owner->end_ns = end_beside_others(course, call);
        break;
    case CALL_IS_HELD:
    case CALL_CANCEL: /* what cannot be cancelled goes on */
        if (event->outcome == OUTCOME_REFUSED && call->ask->asked.cancels < course->now)
            course->calls[call->ask->asked.cancels].cancelled = 0;
        break;
    case CALL_WORK: break;
    }
}

static void take_execution(struct promise_course *course) {
    const struct call_event *event = &course->events[course->now];
    struct promise_client *client = client_of(course, event->client);
    client->executed = true;
    for (int node = 0; node < PROMISE_NODES_MOST; node++)
        if (node == event->node || event->node < 0 || event->node >= PROMISE_NODES_MOST)
            client->executed_ns[node] = event->at_ns;
}

void course_take(struct promise_course *course) {
    const struct call_event *event = &course->events[course->now];
    course->now_ns = event->at_ns;
    switch (event->kind) {
    case EVENT_ASK: take_ask(course); break;
    case EVENT_ANSWER: take_answer(course); break;
    case EVENT_EXECUTED: take_execution(course); break;
    case EVENT_FAULT:
    case EVENT_LATE: take_strike(course); break;
    case EVENT_END: course->over = true; break;
    case EVENT_LEASE:
    case EVENT_IDLE:
    case EVENT_LEFT:
    case EVENT_KINDS: break;
    }
}

/* --- what is said --- */

void promise_break(struct promise_course *course, enum promise promise, uint32_t other, int64_t expected_ms,
                   int64_t found_ms, const char *format, ...) {
    if (course->found_count == course->most) return;
    struct broken_promise *broken = &course->found[course->found_count++];
    *broken = (struct broken_promise){
        .promise = promise, .event = course->now, .other = other, .expected_ms = expected_ms, .found_ms = found_ms};
    va_list values;
    va_start(values, format);
    vsnprintf(broken->sentence, sizeof broken->sentence, format, values);
    va_end(values);
}

const char *caller_text(const struct call *call, char *buffer, size_t size) {
    snprintf(buffer, size, "client-%d (thread-%d, lock-%d)", call->client + 1, call->thread + 1, call->lock + 1);
    return buffer;
}

const char *mode_text(enum call_mode mode) {
    static const char *const NAMES[CALL_MODES] = {"exclusive", "read", "write", "permit"};
    return NAMES[mode];
}
