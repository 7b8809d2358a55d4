#include "harness/library/library_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/search/mix.h"
#include "harness/search/search.h"

enum { HORIZON = 80, DEVIATES_OF = 4 };

_Static_assert((int)LIBRARY_CHOICES <= (int)SEARCH_CHOICES, "all steps fit into a search's list");
_Static_assert((int)LIBRARY_CLIENTS *LIBRARY_LINKS <= (int)SEARCH_TARGETS, "all targets fit into a search's list");

/* --- a schedule --- */

static void hosted_workload_draw(struct search_world *search, struct workload *workload, uint64_t seed) {
    struct library_world *world = (struct library_world *)search;
    world->settings.protocol->draw(world, workload, seed);
}

static bool hosted_allows(const struct search_world *search, struct choice choice) {
    const struct library_world *world = library_world_of(search);
    return choice_is_fault(choice.kind) ? library_allows(world, choice) : library_can_take(world, choice);
}

static bool hosted_strikes_resource(const struct search_world *search, struct choice fault) {
    (void)search, (void)fault;
    return false; /* calls are judged; there is no protected resource */
}

/* --- its verdicts --- */

static uint64_t events_digest(const struct library_world *world) {
    uint64_t digest = 0x9e3779b97f4a7c15u;
    for (size_t each = 0; each < world->event_count; each++) {
        const struct call_event *event = &world->events[each];
        const uint64_t words[] = {event->kind,
                                  (uint64_t)event->at_ns,
                                  event->call,
                                  event->outcome,
                                  (uint64_t)event->token,
                                  (uint64_t)event->client,
                                  (uint64_t)event->remaining_ms,
                                  (uint64_t)event->until_ns,
                                  event->asked.verb,
                                  (uint64_t)event->asked.thread};
        for (size_t word = 0; word < sizeof words / sizeof words[0]; word++) digest = mix(digest, words[word]);
    }
    return digest;
}

static void hosted_schedule_end(struct search_world *search, const struct search_settings *settings,
                                struct search_outcome *outcome) {
    struct library_world *world = (struct library_world *)search;
    outcome->fresh = library_end(world);
    if (search->reason[0]) return;
    outcome->digest = events_digest(world);
    world->last.events = world->events;
    world->last.event_count = world->event_count;
    world->settings.protocol->judge(world, settings, outcome);
}

/* --- for strategies --- */

static int hosted_target_draw(const struct search_world *search, enum choice_kind kind, struct random *random) {
    const struct library_world *world = library_world_of(search);
    if (choice_strikes(kind, TARGET_NODE)) return (int)random_below(random, (uint64_t)world->settings.nodes);
    int client = (int)random_below(random, (uint64_t)world->workload.clients);
    if (choice_strikes(kind, TARGET_CLIENT)) return client;
    int links = world->clients[client].links_used;
    return library_link_number(client, links ? (int)random_below(random, (uint64_t)links) : 0);
}

static int hosted_targets(const struct search_world *search, enum choice_kind kind, int *targets) {
    const struct library_world *world = library_world_of(search);
    int count = 0;
    if (choice_strikes(kind, TARGET_MESSAGE)) {
        for (int client = 0; client < world->workload.clients; client++)
            for (int link = 0; link < world->clients[client].links_used; link++)
                targets[count++] = library_link_number(client, link);
        return count;
    }
    int most = choice_strikes(kind, TARGET_NODE) ? world->settings.nodes : world->workload.clients;
    for (; count < most; count++) targets[count] = count;
    return count;
}

static struct choice hosted_step_draw(const struct search_world *search, struct random *random, bool main) {
    static const enum choice_kind KINDS[] = {CHOICE_REQUEST, CHOICE_ANSWER, CHOICE_CALL};
    const struct library_world *world = library_world_of(search);
    int client = (int)random_below(random, (uint64_t)world->workload.clients);
    enum choice_kind kind = KINDS[random_below(random, main ? 2 : 3)];
    int links = world->clients[client].links_used;
    int part = (int)random_below(random, kind == CHOICE_CALL ? WORKLOAD_THREADS : links > 0 ? (uint64_t)links : 1);
    int who = kind == CHOICE_CALL ? workload_thread_number(client, part) : library_link_number(client, part);
    return (struct choice){kind, who, 0};
}

uint64_t library_situation(bool is_answer, uint64_t sort) {
    uint64_t name = mix(is_answer, sort);
    return name ? name : 1;
}

static uint64_t hosted_situation(const struct search_world *search, struct choice step) {
    if (step.kind != CHOICE_REQUEST && step.kind != CHOICE_ANSWER) return 0;
    const struct library_link *link = library_link_look(library_world_of(search)->clients, step.who);
    if (!link) return 0;
    bool is_answer = step.kind == CHOICE_ANSWER;
    return library_situation(is_answer, is_answer ? link->asked_sort : link->requests.messages[0].sort);
}

static struct choice hosted_aimed(const struct search_world *search, struct choice fault, struct choice step) {
    int client = choice_client(search->space, step);
    if (choice_strikes(fault.kind, TARGET_CLIENT)) fault.who = client;
    if (step.kind != CHOICE_REQUEST && step.kind != CHOICE_ANSWER) return fault;
    const struct library_link *link = library_link_look(library_world_of(search)->clients, step.who);
    if (choice_strikes(fault.kind, TARGET_MESSAGE)) fault.who = step.who;
    else if (choice_strikes(fault.kind, TARGET_NODE) && link) fault.who = link->node;
    return fault;
}

static uint64_t hosted_state(const struct search_world *search) {
    const struct library_world *world = library_world_of(search);
    uint64_t state = 0;
    for (int number = 0; number < world->workload.clients; number++) {
        const struct library_client *client = &world->clients[number];
        state = mix(state, (uint64_t)client->runs << 1 | (client->paused_until_ns != 0));
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
            state = mix(state, (uint64_t)client->threads[thread].next << 1 | client->threads[thread].asked);
        for (int each = 0; each < client->link_count; each++) {
            const struct library_link *link = &client->links[each];
            if (link->number >= 0 && !link->ended)
                state = mix(state, (uint64_t)link->node << 16 | (uint64_t)(link->requests.count > 0) << 1 |
                                       (uint64_t)(link->answers.count > 0));
        }
    }
    return state;
}

/* --- for results --- */

/* The call that the struck client is making; of a server, the client of the last step. */
static int hosted_place(const struct search_world *search, struct choice choice) {
    const struct library_world *world = library_world_of(search);
    int client = choice_strikes(choice.kind, TARGET_NODE) ? search->current : choice_client(search->space, choice);
    for (int thread = 0; thread < WORKLOAD_THREADS && client >= 0; thread++) {
        const struct library_thread *state = &world->clients[client].threads[thread];
        const struct workload_thread *calls = &world->workload.threads[workload_thread_number(client, thread)];
        if (state->asked) return 1 + (int)calls->calls[state->next].call.verb;
    }
    return 0;
}

static const char *hosted_place_name(const struct search_world *search, int place) {
    (void)search;
    if (place == 0) return "between calls";
    return place <= (int)CALL_REQUEST + 1 ? CALL_VERBS[place - 1] : NULL;
}

static uint64_t hosted_commands(const struct search_world *search) {
    return library_world_of(search)->commands;
}

static void hosted_session_end(struct search_world *search) {
    library_session_end((struct library_world *)search);
}

static void hosted_watch(struct search_world *search, const struct schedule *played) {
    struct library_world *world = (struct library_world *)search; /* events are always noted */
    world->played = played;
    world->deviations = json_array();
    world->heard = json_array();
}

static void hosted_keep(struct search_world *search) {
    struct library_world *world = (struct library_world *)search;
    size_t size = world->last.event_count * sizeof *world->last.events;
    free(world->kept.events);
    world->kept = world->last;
    world->kept.events = malloc(size ? size : 1);
    if (!world->kept.events) abort();
    memcpy(world->kept.events, world->last.events, size);
    world->settings.protocol->keep(world);
}

static void hosted_introduce(const struct search_world *search, json_t *result) {
    const struct library_world *world = library_world_of(search);
    json_object_set_new(result, "offer", offer_json(&world->offer));
    world->settings.protocol->introduce(world, result);
}

static void hosted_describe(const struct search_world *search, bool kept, json_t *result) {
    const struct library_world *world = library_world_of(search);
    const struct library_evidence *of = kept ? &world->kept : &world->last;
    world->settings.protocol->describe(world, kept, result);
    json_object_set_new(result, "events", call_events_json(of->events, of->event_count, world->settings.nodes));
    if (kept || !world->played) return;
    json_object_set_new(result, "deviations", json_deep_copy(world->deviations));
    json_object_set_new(result, "commands", json_deep_copy(world->heard));
}

static const struct search_world_operations OPERATIONS = {
    .workload_draw = hosted_workload_draw,
    .begin = library_begin,
    .choices = library_choices,
    .allows = hosted_allows,
    .strikes_resource = hosted_strikes_resource,
    .apply = library_apply,
    .end = hosted_schedule_end,
    .target_draw = hosted_target_draw,
    .targets = hosted_targets,
    .step_draw = hosted_step_draw,
    .situation = hosted_situation,
    .aimed = hosted_aimed,
    .state = hosted_state,
    .place = hosted_place,
    .place_name = hosted_place_name,
    .commands = hosted_commands,
    .session_end = hosted_session_end,
    .watch = hosted_watch,
    .keep = hosted_keep,
    .introduce = hosted_introduce,
    .describe = hosted_describe,
};

/* --- from its opening to its closing --- */

void library_search_make(struct library_world *world, const struct library_settings *settings) {
    world->search = (struct search_world){.operations = &OPERATIONS,
                                          .space = &HOSTED_CHOICES,
                                          .property_count = settings->protocol->property_count,
                                          .property_name = settings->protocol->property_name,
                                          .steps_most = settings->protocol->steps_most,
                                          .lease_ms = settings->lease_ms,
                                          .portfolio = settings->protocol->portfolio,
                                          .portfolio_turns = settings->protocol->portfolio_turns,
                                          .usual_courses = settings->protocol->usual_courses,
                                          .deviates_of = DEVIATES_OF,
                                          .horizon = HORIZON,
                                          .has_programs = true,
                                          .acts_itself = settings->protocol->acts_between};
}
