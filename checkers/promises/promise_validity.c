/* Validity: a grant can be valid when it is handed over.
 *
 * Of a library whose grants say until when they are valid: that is after the answer, and no later than a lease after a
 * majority of servers heard of this client. Of a library that needs a majority of servers and says nothing: less than a
 * majority of them heard of this client during the last lease before the answer, and each heard of it before; then the
 * lease has run out at a majority.
 *
 * Not required after a clock was set, where the client stood still during the call (no library can check in time then),
 * and of leases without end. */
#include "checkers/promises/promise_rule.h"

static bool client_stood_still(const struct promise_pass *pass, const struct promise_call *call) {
    for (const struct promise_disturbance *disturbance = pass->disturbances;
         disturbance < pass->disturbances + pass->disturbance_count; disturbance++) {
        bool still = disturbance->event->kind == EVENT_FAULT && disturbance->event->effect == FAULT_STILL;
        if (still && disturbance->event->client == call->owner->client->client &&
            disturbance->until_ns >= call->ask->at_ns)
            return true;
    }
    return false;
}

/* How many servers executed a command of the client within a lease before that moment. */
static int servers_reached(const struct promise_pass *pass, const struct promise_client *client, int64_t lease_ms,
                           int64_t until_ns) {
    int recent = 0;
    for (int node = 0; node < servers_of(pass); node++)
        recent += after_ms(client->executed_ns[node], lease_ms + grain_ms(pass)) > until_ns;
    return recent;
}

/* Is it known which servers executed commands of the client? */
static bool executions_are_known(const struct promise_pass *pass, const struct promise_client *client) {
    return pass->facts->nodes <= PROMISE_NODES_MOST && client->executed;
}

static void check_stated(struct promise_pass *pass, const struct promise_call *call, int64_t until_ns,
                         int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    uint32_t ask = pass->event->call;
    const struct caller_name caller = caller_name_of(&call->ask->asked);
    if (until_ns <= pass->now_ns)
        promise_break(pass, PROMISE_VALIDITY, ask, 0, ms_of(until_ns - pass->now_ns),
                      "%s was granted what had been valid until %lld ms before", caller.text,
                      (long long)ms_of(pass->now_ns - until_ns));
    else if (until_ns > after_ms(pass->now_ns, lease_ms + grain_ms(pass)))
        promise_break(pass, PROMISE_VALIDITY, ask, lease_ms, ms_of(until_ns - pass->now_ns),
                      "%s was granted what is valid for %lld ms; its lease is %lld ms", caller.text,
                      (long long)ms_of(until_ns - pass->now_ns), (long long)lease_ms);
    else if (executions_are_known(pass, client) &&
             servers_reached(pass, client, lease_ms, until_ns - 1) < majority_of(pass))
        promise_break(pass, PROMISE_VALIDITY, ask, lease_ms, ms_of(until_ns - pass->now_ns),
                      "%s was granted what is valid for %lld ms; a majority heard of it within its lease of %lld ms no "
                      "longer then",
                      caller.text, (long long)ms_of(until_ns - pass->now_ns), (long long)lease_ms);
}

static void check_executed(struct promise_pass *pass, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    if (!executions_are_known(pass, client)) return;
    int recent = servers_reached(pass, client, lease_ms, pass->now_ns);
    if (recent < majority_of(pass))
        promise_break(pass, PROMISE_VALIDITY, pass->event->call, majority_of(pass), recent,
                      "%s was granted what %d of %d servers heard of within its lease",
                      caller_name_of(&call->ask->asked).text, recent, pass->facts->nodes);
}

static void promise_validity_answered(struct promise_pass *pass) {
    const struct promise_call *call = granted_call(pass);
    const struct call_event *event = pass->event;
    if (!call || pass->clock) return;
    int64_t lease_ms = lease_of_call(pass, &call->ask->asked);
    if (lease_ms == PROMISE_ALWAYS || client_stood_still(pass, call)) return;
    if (pass->facts->validity && event->valid_until_ns) check_stated(pass, call, event->valid_until_ns, lease_ms);
    else if (pass->facts->nodes > 1) check_executed(pass, call, lease_ms);
}

const struct promise_rule PROMISE_RULE_VALIDITY = {.on = {[EVENT_ANSWER] = promise_validity_answered}};
