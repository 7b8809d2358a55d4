#include "harness/library/library_world.h"

json_t *offer_json(const struct library_offer *offer) {
    json_t *forms = json_array();
    for (int each = 0; each < offer->form_count; each++)
        json_array_append_new(forms, json_string(offer->forms[each].name));
    return json_pack("{s:s,s:s,s:i,s:i,s:o}", "name", offer->name, "version", offer->version, "threads", offer->threads,
                     "nodes", offer->facts.nodes, "forms", forms);
}

json_t *broken_promises_json(const struct broken_promise *broken, int count) {
    json_t *evidence = json_array();
    for (int each = 0; each < count; each++) {
        const struct broken_promise *one = &broken[each];
        json_array_append_new(evidence, json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "promise", promise_name(one->promise),
                                                  "sentence", one->sentence, "event", (json_int_t)one->event, "other",
                                                  (json_int_t)one->other, "expected_ms", (json_int_t)one->expected_ms,
                                                  "found_ms", (json_int_t)one->found_ms));
    }
    return evidence;
}

/* --- events --- */

static const char *const KINDS[EVENT_KINDS] = {"ask",  "answer", "executed", "lease", "fault",
                                               "late", "idle",   "end",      "left",  "notice"};

static void call_json(const struct call *call, json_t *body) {
    if (call->verb == CALL_REQUEST) {
        json_object_update_new(body, json_pack("{s:s,s:i,s:i,s:s}", "call", CALL_VERBS[call->verb], "client",
                                               call->client + 1, "thread", call->thread + 1, "form", call->form));
        return;
    }
    json_object_update_new(body, json_pack("{s:s,s:i,s:i,s:i,s:i,s:s}", "call", CALL_VERBS[call->verb], "client",
                                           call->client + 1, "thread", call->thread + 1, "lock", call->lock + 1,
                                           "resource", call->resource + 1, "mode", CALL_MODES[call->mode]));
    if (call->over) json_object_set_new(body, "over", json_true());
    if (call->again) json_object_set_new(body, "again", json_true());
    if (call->verb != CALL_ACQUIRE) return;
    json_object_update_new(body, json_pack("{s:s,s:s,s:s}", "form", call->form ? call->form : "", "wait",
                                           CALL_WAITS[call->wait], "lease", CALL_LEASES[call->lease]));
    if (call->wait == WAIT_TIME) json_object_set_new(body, "wait_ms", json_integer((json_int_t)call->wait_ms));
    if (call->lease == LEASE_GIVEN) json_object_set_new(body, "lease_ms", json_integer((json_int_t)call->lease_ms));
}

static void answer_json(const struct call_event *events, const struct call_event *event, json_t *body) {
    call_json(&events[event->call].asked, body);
    json_object_set_new(body, "asked", json_integer(event->call));
    json_object_set_new(body, "outcome", json_string(CALL_OUTCOMES[event->outcome]));
    if (event->token) json_object_set_new(body, "token", json_integer((json_int_t)event->token));
    if (event->cancelled) json_object_set_new(body, "cancelled", json_true());
    if (event->name[0]) json_object_set_new(body, "error", json_string(event->name));
}

static void struck_event_json(const struct call_event *event, json_t *body) {
    const char *fault = choice_fault_name((enum choice_kind)event->fault);
    json_object_set_new(body, "fault", json_string(fault ? fault : ""));
    json_object_set_new(body, "until_ns", json_integer((json_int_t)event->until_ns));
    if (event->client >= 0) json_object_set_new(body, "client", json_integer(event->client + 1));
}

static void executed_json(const struct call_event *event, json_t *body) {
    json_object_set_new(body, "client", json_integer(event->client + 1));
    if (!event->longer_ms) return;
    json_object_set_new(body, "resource", json_integer(event->resource + 1));
    json_object_set_new(body, "longer_ms", json_integer((json_int_t)event->longer_ms));
    if (event->makes) json_object_set_new(body, "makes", json_true());
}

json_t *call_events_json(const struct call_event *events, size_t count, int nodes) {
    json_t *all = json_array();
    for (size_t each = 0; each < count; each++) {
        const struct call_event *event = &events[each];
        json_t *body = json_pack("{s:s,s:I}", "event", KINDS[event->kind], "at_ns", (json_int_t)event->at_ns);
        if (event->kind == EVENT_ASK) call_json(&event->asked, body);
        if (event->kind == EVENT_ASK && event->place) json_object_set_new(body, "place", json_integer(event->place));
        if (event->kind == EVENT_ANSWER) answer_json(events, event, body);
        if (event->kind == EVENT_FAULT || event->kind == EVENT_LATE) struck_event_json(event, body);
        if (event->kind == EVENT_EXECUTED) executed_json(event, body);
        if (event->kind == EVENT_LEASE)
            json_object_set_new(body, "remaining_ms", json_integer((json_int_t)event->remaining_ms));
        if (event->kind == EVENT_LEASE) json_object_set_new(body, "resource", json_integer(event->resource + 1));
        if (event->kind == EVENT_LEASE && nodes > 1) json_object_set_new(body, "node", json_integer(event->node + 1));
        if (event->kind == EVENT_NOTICE)
            json_object_update_new(body, json_pack("{s:i,s:i,s:i,s:i}", "client", event->client + 1, "thread",
                                                   event->asked.thread + 1, "lock", event->asked.lock + 1, "resource",
                                                   event->asked.resource + 1));
        if (event->kind == EVENT_LEFT) json_object_set_new(body, "left", json_string(event->name));
        json_array_append_new(all, body);
    }
    return all;
}
