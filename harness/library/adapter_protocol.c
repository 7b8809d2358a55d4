/* How the world speaks to the adapter of a library (docs/adapters.md), and how what it answered is judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/library/library_world.h"
#include "harness/search/search.h"

_Static_assert((int)PROMISES <= (int)SEARCH_PROPERTIES, "each promise is a property");

/* Limits of virtual time for what is no call: a program that starts, and one that forgets. */
enum { OPEN_LIMIT_MS = 120000, FORGET_LIMIT_MS = 60000, PROTOCOL_LEAST = 2, PROTOCOL = 3 };
enum { WARM_UP_TRIES = 3 };

/* The usual course, mostly the usual course, and PCT in turn; each without faults, with faults, with aimed ones, and
 * with faults. Two of the last turns have rare kinds: new programs cost more than a schedule. The usual course finds
 * what a workload alone brings about, and its stories are the shortest. */
static const struct portfolio_turn PORTFOLIO[] = {
    {STRATEGY_USUAL, FAULTS_NONE, false}, {STRATEGY_UNIFORM, FAULTS_NONE, false}, {STRATEGY_PCT, FAULTS_NONE, false},
    {STRATEGY_USUAL, FAULTS_SOME, false}, {STRATEGY_UNIFORM, FAULTS_SOME, false}, {STRATEGY_PCT, FAULTS_SOME, false},
    {STRATEGY_USUAL, FAULTS_SOME, true},  {STRATEGY_UNIFORM, FAULTS_SOME, true},  {STRATEGY_PCT, FAULTS_SOME, true},
    {STRATEGY_USUAL, FAULTS_RARE, false}, {STRATEGY_UNIFORM, FAULTS_RARE, false}, {STRATEGY_PCT, FAULTS_SOME, false}};

static const char *adapter_program(const struct library_world *world, int client) {
    (void)client;
    return world->settings.program;
}

/* --- questions that are no calls --- */

/* Asks what is no call, and lets everything happen until it is answered with `ok`. */
static bool program_ask(struct library_world *world, int number, json_t *body, int64_t limit_ms) {
    char verb[24];
    snprintf(verb, sizeof verb, "%s", json_string_value(json_object_get(body, "op")));
    if (!calls_ask_control(world, number, body)) return false;
    if (!library_drain(world, number, limit_ms))
        return library_give_up(world, "client-%d did not answer %s within %lld s of its time", number + 1, verb,
                               (long long)limit_ms / 1000);
    return world->clients[number].control_outcome == OUTCOME_OK;
}

static bool hello_ask(struct library_world *world, int number) {
    json_t *hello = json_pack("{s:s,s:i}", "op", "hello", "protocol", PROTOCOL);
    if (!library_program_start(world, number, world->settings.seed)) {
        json_decref(hello);
        return false;
    }
    return program_ask(world, number, hello, OPEN_LIMIT_MS) ||
           library_give_up(world, "client-%d refused to say hello", number + 1);
}

/* What the library is given: under sentinels it is given their addresses, and asks them for the master's. */
static json_t *nodes_json(const struct library_world *world, int number) {
    json_t *nodes = json_array();
    for (int node = 0; node < world->settings.nodes; node++) {
        const struct link_door *door = &world->clients[number].doors[node];
        int own = link_door_port(door), port = world->settings.ports[node] ? world->settings.ports[node] : own;
        bool asks_sentinels = world->offer.topology == TOPOLOGY_SENTINEL;
        if (asks_sentinels && world->servers[node].kind != &SENTINEL_KIND) continue;
        json_array_append_new(nodes, own ? json_pack("{s:s,s:i}", "host", "127.0.0.1", "port", port)
                                         : json_pack("{s:s}", "unix", door->address.text));
    }
    return nodes;
}

/* "capacity=1 mode=fair" as an object: whole numbers, and texts. */
static json_t *settings_json(const char *settings) {
    json_t *body = json_object();
    char copy[WORKLOAD_SETTINGS], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", settings);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '='), *end = NULL;
        *value++ = '\0';
        long long number = strtoll(value, &end, 10);
        json_object_set_new(body, word, *end ? json_string(value) : json_integer(number));
    }
    return body;
}

static bool program_open(struct library_world *world, int number) {
    char name[OFFER_NAME];
    json_t *settings = settings_json(world->opened);
    json_t *body = json_pack("{s:s,s:s,s:I,s:i,s:b,s:o}", "op", "open", "resource", library_resource_name(0, name),
                             "lease_ms", (json_int_t)world->settings.lease_ms, "permits", world->settings.permits,
                             "fixed_lease", 0, "nodes", nodes_json(world, number));
    if (json_object_size(settings) > 0) json_object_set(body, "settings", settings);
    json_decref(settings);
    if (world->offer.topology == TOPOLOGY_SENTINEL)
        json_object_set_new(body, "master", json_string(world->settings.master));
    return program_ask(world, number, body, OPEN_LIMIT_MS) ||
           library_give_up(world, "client-%d could not be opened", number + 1);
}

/* --- what the library offers --- */

/* Whether the servers are such that the library is configured for. */
static bool topology_fits(const struct library_world *world) {
    int cluster = 0, sentinels = 0;
    for (int node = 0; node < world->settings.nodes; node++) {
        cluster += world->servers[node].kind == &CLUSTER_KIND;
        sentinels += world->servers[node].kind == &SENTINEL_KIND;
    }
    switch (world->offer.topology) {
    case TOPOLOGY_CLUSTER: return cluster == world->settings.nodes;
    case TOPOLOGY_SENTINEL: return sentinels == world->settings.nodes - 1 && world->settings.master;
    default: return cluster + sentinels == 0;
    }
}

static bool adapter_offer(struct library_world *world) {
    char reason[OFFER_REASON];
    const struct library_settings *settings = &world->settings;
    if (!hello_ask(world, 0)) return false;
    const json_t *hello = world->clients[0].control_answer;
    const json_t *protocol = json_object_get(hello, "protocol");
    bool good = json_integer_value(protocol) >= PROTOCOL_LEAST && json_integer_value(protocol) <= PROTOCOL;
    if (!good)
        library_give_up(world, "the adapter does not speak protocol 2 or 3 (docs/adapters.md), which a search needs");
    else if (!offer_read(hello, settings->lease_ms, settings->permits, &world->offer, reason) ||
             (settings->form_count && !offer_restrict(&world->offer, settings->forms, settings->form_count, reason)))
        good = library_give_up(world, "%s", reason);
    else if (!topology_fits(world))
        good = library_give_up(world, "the library needs servers of the topology %s",
                               LIBRARY_TOPOLOGIES[world->offer.topology]);
    else if (world->offer.facts.nodes > world->settings.nodes)
        good = library_give_up(world, "the library needs %d servers", world->offer.facts.nodes);
    world->search.lease_of_object = world->offer.lease_of_object;
    library_session_end(world);
    return good;
}

/* --- the beginning and the end of a program --- */

static int first_bit(unsigned bits) {
    return bits ? __builtin_ctz(bits) : 0;
}

/* Asks a few times for a lock that nobody else uses; one that is never granted is found broken (hosted_search.c). */
static bool is_granted(struct library_world *world, int number, const struct call *call) {
    for (int tries = 0; tries < WARM_UP_TRIES && !world->search.reason[0]; tries++)
        if (program_ask(world, number, calls_body(&world->offer, call), OPEN_LIMIT_MS)) return true;
    world->never_grants = true;
    return false;
}

static bool warm_up_mode(struct library_world *world, int number, enum call_mode mode) {
    const struct library_form *form = &world->offer.forms[0];
    struct call call = {.client = number, .form = form->name, .mode = mode};
    call.wait = (enum call_wait)first_bit(form->waits);
    call.lease = (enum call_lease)first_bit(form->leases);
    call.lease_ms = call.lease == LEASE_GIVEN ? world->settings.lease_ms : 0;
    call.wait_ms = call.wait == WAIT_TIME ? world->settings.lease_ms : call.wait == WAIT_FOREVER ? -1 : 0;
    call.verb = CALL_ACQUIRE;
    if (!is_granted(world, number, &call)) return !world->search.reason[0];
    /* Whether a hold is renewed and released as it should be is what schedules find out. */
    static const enum call_verb VERBS[] = {CALL_IS_HELD, CALL_RENEW, CALL_RELEASE};
    for (size_t each = 0; each < sizeof VERBS / sizeof VERBS[0]; each++) {
        call.verb = VERBS[each];
        if (call.verb == CALL_IS_HELD && !form->answers_is_held) continue;
        if (call.verb == CALL_RENEW && !form->renews) continue;
        program_ask(world, number, calls_body(&world->offer, &call), OPEN_LIMIT_MS);
        if (world->search.reason[0]) return false;
    }
    return true;
}

/* The first calls of a program open connections and load scripts. They are made before the first schedule, so that
 * later ones are like it. */
static bool warm_up(struct library_world *world, int number) {
    library_servers_flush(world);
    for (int mode = MODE_EXCLUSIVE; mode <= MODE_PERMIT; mode++)
        if (world->offer.modes >> mode & 1 && !warm_up_mode(world, number, (enum call_mode)mode)) return false;
    return program_ask(world, number, json_pack("{s:s}", "op", "forget"), FORGET_LIMIT_MS) ||
           library_give_up(world, "client-%d could not forget", number + 1);
}

static bool adapter_begin(struct library_world *world, int number) {
    return library_doors_open(world, number) && hello_ask(world, number) && program_open(world, number) &&
           warm_up(world, number);
}

static bool adapter_begun(struct library_world *world, uint64_t seed) {
    (void)world, (void)seed;
    return true;
}

static bool adapter_forget(struct library_world *world, int number) {
    return program_ask(world, number, json_pack("{s:s}", "op", "forget"), FORGET_LIMIT_MS);
}

static bool adapter_empty(struct library_world *world) {
    library_servers_flush(world);
    return true;
}

static void adapter_draw(struct library_world *world, struct workload *workload, uint64_t seed) {
    workload_draw(workload, &world->offer, world->settings.lease_ms, seed);
    if (!world->has_drawn) settings_draw(&world->offer, seed, world->drawn);
    world->has_drawn = true;
    memcpy(workload->settings, world->drawn, sizeof workload->settings);
}

/* --- its verdicts --- */

static const char *promise_property(int promise) {
    return promise_name((enum promise)promise);
}

/* Whether a client asked for a lock in this schedule, and was answered with a grant (`granted`), or without one. */
static bool any_is_answered(const struct library_world *world, bool granted) {
    for (size_t each = 0; each < world->event_count; each++) {
        const struct call_event *event = &world->events[each];
        if (event->kind == EVENT_ANSWER && world->events[event->call].asked.verb == CALL_ACQUIRE &&
            (event->outcome == OUTCOME_OK) == granted)
            return true;
    }
    return false;
}

/* A lock that is granted and lives elsewhere than on the servers of this world: time there is not virtual. */
static bool is_granted_elsewhere(const struct library_world *world) {
    for (size_t each = 0; each < world->event_count; each++)
        if (world->events[each].kind == EVENT_EXECUTED) return false;
    return any_is_answered(world, true);
}

/* Nobody can get a lock that a program was not granted before the schedule, and nobody in it. */
static void look_for_never_granted(struct library_world *world) {
    struct promise_findings *found = &world->last.found;
    bool in_vain = any_is_answered(world, false) && !any_is_answered(world, true);
    if (!world->never_grants || !in_vain || found->broken_count == PROMISES_SHOWN) return;
    uint32_t end = (uint32_t)(world->event_count - 1); /* EVENT_END */
    found->broken[found->broken_count++] = (struct broken_promise){
        .promise = PROMISE_LIVENESS,
        .event = end,
        .other = end,
        .sentence =
            "nobody can get the lock: on a fresh server a program that was alone asked again and again, and was "
            "not granted it"};
}

/* What is not broken is kept; whether the question came up in a schedule is not counted. */
static void adapter_judge(struct library_world *world, const struct search_settings *settings,
                          struct search_outcome *outcome) {
    struct library_evidence *last = &world->last;
    char *reason = world->search.reason;
    if (is_granted_elsewhere(world)) {
        snprintf(reason, sizeof world->search.reason, "%s",
                 "the lock does not use the servers of `open`: a client was granted it, and nothing of it reached "
                 "them. What it does use has no virtual time");
        return;
    }
    if (!promises_judge(&world->offer.facts, world->events, world->event_count, &last->found)) abort();
    look_for_never_granted(world);
    for (int promise = 0; promise < PROMISES; promise++) outcome->status[promise] = VERDICT_HOLDS;
    for (int each = last->found.broken_count - 1; each >= 0; each--) {
        enum promise promise = last->found.broken[each].promise;
        outcome->status[promise] = VERDICT_VIOLATED;
        outcome->sorts[promise] = 1;
        outcome->applies[promise] = true;
        if (settings->required[promise])
            snprintf(outcome->sentence, sizeof outcome->sentence, "%s", last->found.broken[each].sentence);
    }
}

static void adapter_introduce(const struct library_world *world, json_t *result) {
    (void)world, (void)result; /* its offer says it all */
}

static void adapter_keep(struct library_world *world) {
    (void)world; /* world->kept has it */
}

static void adapter_describe(const struct library_world *world, bool kept, json_t *result) {
    const struct library_evidence *of = kept ? &world->kept : &world->last;
    json_object_set_new(result, "evidence", broken_promises_json(of->found.broken, of->found.broken_count));
    json_object_set_new(result, "excused", broken_promises_json(of->found.excused, of->found.excused_count));
}

/* It reaches what it likes: one that asks another server is found by that (hosted_search.c). */
static void adapter_connect(struct library_world *world, int client) {
    (void)world;
    (void)client;
}

/* No client of a library is a job. */
static int adapters_lasting(const struct library_world *world) {
    (void)world;
    return LIBRARY_CLIENTS;
}

const struct hosted_protocol ADAPTER_PROTOCOL = {
    .program_title = "the program of client-",
    .property_count = PROMISES,
    .property_name = promise_property,
    .program = adapter_program,
    .offer = adapter_offer,
    .connect = adapter_connect,
    .lasting = adapters_lasting,
    .begin = adapter_begin,
    .begun = adapter_begun,
    .forget = adapter_forget,
    .empty = adapter_empty,
    .draw = adapter_draw,
    .ask = adapter_call_ask,
    .hear = adapter_answers_hear,
    .judge = adapter_judge,
    .introduce = adapter_introduce,
    .keep = adapter_keep,
    .describe = adapter_describe,
    .steps_most = LIBRARY_STEPS_MOST,
    .portfolio = PORTFOLIO,
    .portfolio_turns = sizeof PORTFOLIO / sizeof PORTFOLIO[0],
};
