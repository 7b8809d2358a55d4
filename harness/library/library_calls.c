#include "harness/library/library_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/clock.h"

static bool calls_fail(struct library_world *world, int client, const char *why, const char *line) {
    snprintf(world->search.reason, sizeof world->search.reason, "the adapter of client-%d %s%s%.120s", client + 1, why,
             *line ? ": " : "", line);
    return false;
}

/* --- asking --- */

json_t *calls_body(const struct library_offer *offer, const struct call *call) {
    char name[OFFER_NAME];
    json_t *body = json_pack("{s:s,s:i,s:i,s:s,s:s}", "op", CALL_VERBS[call->verb], "thread", call->thread + 1, "lock",
                             call->lock + 1, "resource", library_resource_name(call->resource, name), "mode",
                             CALL_MODES[call->mode]);
    if (call->verb == CALL_ACQUIRE) {
        json_object_set_new(body, "form", json_string(call->form));
        json_object_set_new(body, "wait_ms", call->wait == WAIT_FOREVER ? json_null() : json_integer(call->wait_ms));
        json_object_set_new(body, "lease_ms", call->lease == LEASE_GIVEN ? json_integer(call->lease_ms) : json_null());
    }
    if (call->verb == CALL_RENEW && call->lease == LEASE_GIVEN && offer->renews_for)
        json_object_set_new(body, "lease_ms", json_integer(call->lease_ms));
    if (call->over) json_object_set_new(body, "over", json_true());
    return body;
}

/* Takes the body. The number of the question; 0: the program takes none. */
static int question_send(struct library_client *client, json_t *body) {
    json_object_set_new(body, "id", json_integer(++client->question));
    char *line = json_dumps(body, JSON_COMPACT);
    if (!line) abort();
    bool sent = hosted_send(&client->program, line);
    free(line);
    json_decref(body);
    return sent ? client->question : 0;
}

/* Where the first acquire of a lock object says what holds for it, no other call can be the first. */
static bool makes_object(const struct library_world *world, const struct call *call) {
    const struct library_offer *offer = &world->offer;
    bool of_object = offer->lease_of_object || offer->form_of_object || offer->wait_of_object;
    return of_object && call->verb != CALL_ACQUIRE && !world->clients[call->client].acquired[call->lock];
}

bool adapter_call_ask(struct library_world *world, int client, int thread) {
    struct library_thread *state = &world->clients[client].threads[thread];
    const struct planned_call *planned = library_next_call(world, client, thread);
    struct call call = planned->call;
    if (makes_object(world, &call)) {
        state->next++;
        return true;
    }
    world->clients[client].acquired[call.lock] = true;
    call.form = planned->form;
    state->question = question_send(&world->clients[client], calls_body(&world->offer, &call));
    if (!state->question) return calls_fail(world, client, "takes no question", "");
    library_ask_note(world, client, thread, &call);
    state->cancel_at_ns = planned->cancel_after_ms > 0
                              ? shared_page_mono_ns(world->page) + planned->cancel_after_ms * CLOCK_NS_PER_MS
                              : 0;
    return true;
}

bool calls_cancel(struct library_world *world, int client, int thread) {
    struct library_thread *state = &world->clients[client].threads[thread];
    struct call cancel = world->events[state->ask].asked;
    cancel.verb = CALL_CANCEL;
    cancel.cancels = state->ask;
    state->cancel_at_ns = 0;
    state->cancel_ask =
        library_event_add(world, (struct call_event){.kind = EVENT_ASK, .asked = cancel, .client = client});
    json_t *body = json_pack("{s:s,s:i}", "op", "cancel", "call", state->question);
    state->cancel = question_send(&world->clients[client], body);
    return state->cancel > 0 || calls_fail(world, client, "takes no question", "");
}

bool calls_cancel_at(struct library_world *world, int client, bool gone_on) {
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++) {
        struct library_thread *state = &world->clients[client].threads[thread];
        if (!state->asked || !world->clients[client].runs || library_is_paused(world, client)) continue;
        state->messages += gone_on;
        int at = library_next_call(world, client, thread)->cancel_at;
        if (at > 0 && state->messages == at - 1 && !state->cancel && !calls_cancel(world, client, thread)) return false;
    }
    return true;
}

bool calls_ask_control(struct library_world *world, int client, json_t *body) {
    struct library_client *of = &world->clients[client];
    json_decref(of->control_answer);
    of->control_answer = NULL;
    of->control = question_send(of, body);
    return of->control > 0 || calls_fail(world, client, "takes no question", of->program.reason);
}

/* --- answers --- */

static bool outcome_read(const json_t *body, enum outcome *outcome) {
    int place = call_word_find(CALL_OUTCOMES, json_string_value(json_object_get(body, "outcome")));
    *outcome = place > 0 ? (enum outcome)place : OUTCOME_UNKNOWN;
    return place >= 0;
}

/* What was not granted is not worked under, and not released; a release is asked once more only if it has failed. */
static void thread_go_on(struct library_thread *state, const struct workload_thread *calls, enum outcome outcome,
                         bool cancelled) {
    const struct planned_call *planned = &calls->calls[state->next];
    bool skips = planned->call.verb == CALL_ACQUIRE && outcome != OUTCOME_OK && planned->match >= 0;
    bool failed = planned->call.verb == CALL_RELEASE && (outcome == OUTCOME_UNKNOWN || cancelled);
    state->next = skips ? planned->match + 1 : state->next + 1;
    while (!failed && state->next < calls->count && calls->calls[state->next].call.again) state->next++;
    state->asked = false;
    state->cancel_at_ns = 0;
}

static void answer_note(struct library_world *world, int client, struct library_thread *state, const json_t *body,
                        enum outcome outcome) {
    const json_t *token = json_object_get(body, "token"), *until = json_object_get(body, "valid_until_ms");
    struct call_event event = {.kind = EVENT_ANSWER,
                               .call = state->ask,
                               .asked = world->events[state->ask].asked,
                               .outcome = outcome,
                               .client = client,
                               .token = json_is_integer(token) ? json_integer_value(token) : 0,
                               .timers_late_ns = hosted_late_ns(&world->clients[client].program) - state->asked_late_ns,
                               .cancelled = json_is_true(json_object_get(body, "cancelled"))};
    if (json_is_number(until))
        event.valid_until_ns =
            (int64_t)(json_number_value(until) * (double)CLOCK_NS_PER_MS) - SHARED_PAGE_UPTIME_NS - world->began_ns;
    const char *error = json_string_value(json_object_get(body, "error"));
    snprintf(event.name, sizeof event.name, "%s", error ? error : "");
    library_event_add(world, event);
}

static bool answer_take(struct library_world *world, int client, const json_t *body, enum outcome outcome) {
    struct library_client *of = &world->clients[client];
    json_int_t id = json_integer_value(json_object_get(body, "id"));
    if (id > 0 && id == of->control) {
        of->control = 0;
        of->control_outcome = outcome;
        of->control_answer = json_deep_copy(body);
        return true;
    }
    for (int thread = 0; thread < WORKLOAD_THREADS; thread++) {
        struct library_thread *state = &of->threads[thread];
        if (state->cancel && state->cancel == id) {
            state->cancel = 0;
            library_event_add(world, (struct call_event){.kind = EVENT_ANSWER,
                                                         .call = state->cancel_ask,
                                                         .asked = world->events[state->cancel_ask].asked,
                                                         .outcome = outcome,
                                                         .client = client});
            return true;
        }
        if (!state->asked || state->question != id) continue;
        answer_note(world, client, state, body, outcome);
        thread_go_on(state, &world->workload.threads[workload_thread_number(client, thread)], outcome,
                     json_is_true(json_object_get(body, "cancelled")));
        return true;
    }
    return id > 0 && id <= of->question; /* a late one */
}

/* What the library tells by itself: a hold is lost. */
static bool notice_take(struct library_world *world, int client, const json_t *body) {
    const json_t *thread = json_object_get(body, "thread"), *lock = json_object_get(body, "lock");
    const char *resource = json_string_value(json_object_get(body, "resource"));
    struct call asked = {.client = client, .verb = CALL_WORK};
    asked.thread = json_is_integer(thread) ? (int)json_integer_value(thread) - 1 : 0;
    asked.lock = json_is_integer(lock) ? (int)json_integer_value(lock) - 1 : 0;
    asked.resource = resource ? library_resource_number(resource) : 0;
    bool known = asked.thread >= 0 && asked.thread < WORKLOAD_THREADS && asked.lock >= 0 && asked.lock < LIBRARY_LOCKS;
    if (strcmp(json_string_value(json_object_get(body, "notice")), "lost") != 0 || !known || asked.resource < 0)
        return false;
    library_event_add(world, (struct call_event){.kind = EVENT_NOTICE, .asked = asked, .client = client});
    return true;
}

bool adapter_answers_hear(struct library_world *world, int client) {
    bool any = false;
    for (char *line; !world->search.reason[0] && (line = hosted_line(&world->clients[client].program)) != NULL;
         any = true) {
        enum outcome outcome;
        json_t *body = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(body)) calls_fail(world, client, "said something that is no JSON object", line);
        else if (json_is_string(json_object_get(body, "notice"))) {
            if (!notice_take(world, client, body)) calls_fail(world, client, "gave a notice of no lock", line);
        } else if (!outcome_read(body, &outcome)) calls_fail(world, client, "said no outcome", line);
        else if (!answer_take(world, client, body, outcome))
            calls_fail(world, client, "said no id of a question", line);
        json_decref(body);
    }
    return any;
}
