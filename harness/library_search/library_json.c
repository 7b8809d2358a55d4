#include "harness/library_search/library_json.h"

json_t *library_promises_json(uint32_t promises) {
    json_t *names = json_array();
    for (int promise = 0; promise < PROMISES; promise++)
        if (promises >> promise & 1) json_array_append_new(names, json_string(promise_name((enum promise)promise)));
    return names;
}

static json_t *library_faults_json(uint32_t faults) {
    json_t *names = json_array();
    for (int kind = (int)LIBRARY_FAULTS_FROM; kind < LIBRARY_CHOICE_KINDS; kind++)
        if (faults >> kind & 1)
            json_array_append_new(names, json_string(library_fault_name((enum library_choice_kind)kind)));
    return names;
}

json_t *library_offer_json(const struct library_offer *offer) {
    json_t *forms = json_array();
    for (int each = 0; each < offer->form_count; each++)
        json_array_append_new(forms, json_string(offer->forms[each].name));
    return json_pack("{s:s,s:s,s:i,s:i,s:o}", "name", offer->name, "version", offer->version, "threads", offer->threads,
                     "nodes", offer->facts.nodes, "forms", forms);
}

json_t *library_tally_json(const struct library_search *search) {
    const struct library_tally *tally = &search->tally;
    json_t *broken = json_object(), *faults = json_object();
    for (int promise = 0; promise < PROMISES; promise++)
        json_object_set_new(broken, promise_name((enum promise)promise),
                            json_integer((json_int_t)tally->broken[promise]));
    for (int kind = (int)LIBRARY_FAULTS_FROM; kind < LIBRARY_CHOICE_KINDS; kind++)
        json_object_set_new(faults, library_fault_name((enum library_choice_kind)kind),
                            json_integer((json_int_t)tally->faults[kind]));
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:I,s:s,s:o,s:o}", "schedules", (json_int_t)tally->schedules,
                     "steps", (json_int_t)tally->steps, "calls", (json_int_t)tally->calls, "commands",
                     (json_int_t)tally->commands, "sessions", (json_int_t)tally->sessions, "unplayed",
                     (json_int_t)tally->unplayed, "unplayed_reason", tally->unplayed_reason, "unrepeated",
                     (json_int_t)tally->unrepeated, "unrepeated_reason", tally->unrepeated_reason, "broken", broken,
                     "faults", faults);
}

json_t *library_groups_json(const struct library_tally *tally) {
    json_t *groups = json_array();
    for (int each = 0; each < tally->group_count; each++) {
        const struct library_group *group = &tally->groups[each];
        json_array_append_new(groups, json_pack("{s:o,s:o,s:I,s:I}", "breaks", library_promises_json(group->promises),
                                                "faults", library_faults_json(group->faults), "schedules",
                                                (json_int_t)group->schedules, "first", (json_int_t)group->first));
    }
    return groups;
}

json_t *library_schedule_json(const struct library_schedule *schedule) {
    json_t *calls = json_array(), *lines = json_array();
    char line[WORKLOAD_LINE];
    for (int client = 0; client < schedule->workload.clients; client++)
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
            for (int each = 0; each < schedule->workload.threads[client][thread].count; each++)
                json_array_append_new(calls, json_string(workload_line_write(
                                                 &schedule->workload.threads[client][thread].calls[each], line)));
    for (int each = 0; each < schedule->count; each++)
        json_array_append_new(lines, json_string(library_deviation_write(&schedule->deviations[each], line)));
    return json_pack("{s:i,s:o,s:o}", "clients", schedule->workload.clients, "workload", calls, "schedule", lines);
}

json_t *library_broken_json(const struct library_outcome *outcome) {
    json_t *broken = json_array();
    for (int each = 0; each < outcome->broken_count; each++) {
        const struct broken_promise *one = &outcome->broken[each];
        json_array_append_new(broken, json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "promise", promise_name(one->promise),
                                                "sentence", one->sentence, "event", (json_int_t)one->event, "other",
                                                (json_int_t)one->other, "expected_ms", (json_int_t)one->expected_ms,
                                                "found_ms", (json_int_t)one->found_ms));
    }
    return broken;
}

/* --- events --- */

static const char *const KINDS[EVENT_KINDS] = {"ask",  "answer", "executed", "lease", "fault",
                                               "late", "idle",   "end",      "left"};
static const char *const OUTCOMES[] = {"unknown", "ok", "refused"};

static void call_json(const struct call *call, json_t *body) {
    json_object_set_new(body, "call", json_string(CALL_VERBS[call->verb]));
    json_object_set_new(body, "client", json_integer(call->client + 1));
    json_object_set_new(body, "thread", json_integer(call->thread + 1));
    json_object_set_new(body, "lock", json_integer(call->lock + 1));
    json_object_set_new(body, "resource", json_integer(call->resource + 1));
    json_object_set_new(body, "mode", json_string(CALL_MODES[call->mode]));
    if (call->verb != CALL_ACQUIRE) return;
    json_object_set_new(body, "form", json_string(call->form ? call->form : ""));
    json_object_set_new(body, "wait", json_string(CALL_WAITS[call->wait]));
    json_object_set_new(body, "lease", json_string(CALL_LEASES[call->lease]));
    if (call->wait == WAIT_TIME) json_object_set_new(body, "wait_ms", json_integer((json_int_t)call->wait_ms));
    if (call->lease == LEASE_GIVEN) json_object_set_new(body, "lease_ms", json_integer((json_int_t)call->lease_ms));
}

static void answer_json(const struct call_event *events, const struct call_event *event, json_t *body) {
    call_json(&events[event->call].asked, body);
    json_object_set_new(body, "asked", json_integer(event->call));
    json_object_set_new(body, "outcome", json_string(OUTCOMES[event->outcome]));
    if (event->token) json_object_set_new(body, "token", json_integer((json_int_t)event->token));
    if (event->cancelled) json_object_set_new(body, "cancelled", json_true());
    if (event->name[0]) json_object_set_new(body, "error", json_string(event->name));
}

static void library_struck_json(const struct call_event *event, json_t *body) {
    const char *fault = library_fault_name((enum library_choice_kind)event->fault);
    json_object_set_new(body, "fault", json_string(fault ? fault : ""));
    json_object_set_new(body, "until_ns", json_integer((json_int_t)event->until_ns));
    if (event->client >= 0) json_object_set_new(body, "client", json_integer(event->client + 1));
}

json_t *library_events_json(const struct call_event *events, size_t count, int nodes) {
    json_t *all = json_array();
    for (size_t each = 0; each < count; each++) {
        const struct call_event *event = &events[each];
        json_t *body = json_pack("{s:s,s:I}", "event", KINDS[event->kind], "at_ns", (json_int_t)event->at_ns);
        if (event->kind == EVENT_ASK) call_json(&event->asked, body);
        if (event->kind == EVENT_ANSWER) answer_json(events, event, body);
        if (event->kind == EVENT_FAULT || event->kind == EVENT_LATE) library_struck_json(event, body);
        if (event->kind == EVENT_EXECUTED) json_object_set_new(body, "client", json_integer(event->client + 1));
        if (event->kind == EVENT_LEASE)
            json_object_set_new(body, "remaining_ms", json_integer((json_int_t)event->remaining_ms));
        if (event->kind == EVENT_LEASE) json_object_set_new(body, "resource", json_integer(event->resource + 1));
        if (event->kind == EVENT_LEASE && nodes > 1) json_object_set_new(body, "node", json_integer(event->node + 1));
        if (event->kind == EVENT_LEFT) json_object_set_new(body, "left", json_string(event->name));
        json_array_append_new(all, body);
    }
    return all;
}
