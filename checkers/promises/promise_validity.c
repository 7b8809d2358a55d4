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

extern const struct promise_rule PROMISE_RULE_VALIDITY;

static bool stood_still(const struct promise_course *course, const struct promise_call *call) {
    for (uint32_t at = 0; at < course->strike_count; at++) {
        const struct promise_strike *strike = &course->strikes[at];
        bool still = strike->event->kind == EVENT_FAULT && strike->event->effect == FAULT_STILL;
        if (still && strike->event->client == call->owner->client->client && strike->until_ns >= call->ask->at_ns)
            return true;
    }
    return false;
}

/* How many servers heard of the client within a lease before that moment. */
static int heard_within(const struct promise_course *course, const struct promise_client *client, int64_t lease_ms,
                        int64_t until_ns) {
    int nodes = course->facts->nodes > 1 ? course->facts->nodes : 1, recent = 0;
    for (int node = 0; node < nodes; node++)
        recent += after_ms(client->executed_ns[node], lease_ms + grain_ms(course)) > until_ns;
    return recent;
}

/* Whether it is known which servers executed commands of the client. */
static bool is_heard(const struct promise_course *course, const struct promise_client *client) {
    return course->facts->nodes <= PROMISE_NODES_MOST && client->executed;
}

static void check_stated(struct promise_course *course, const struct promise_call *call, int64_t until_ns,
                         int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    uint32_t ask = course->events[course->now].call;
    char one[64];
    caller_text(&call->ask->asked, one, sizeof one);
    if (until_ns <= course->now_ns)
        promise_break(course, PROMISE_VALIDITY, ask, 0, ms_of(until_ns - course->now_ns),
                      "%s was granted what had been valid until %lld ms before", one,
                      (long long)ms_of(course->now_ns - until_ns));
    else if (until_ns > after_ms(course->now_ns, lease_ms + grain_ms(course)))
        promise_break(course, PROMISE_VALIDITY, ask, lease_ms, ms_of(until_ns - course->now_ns),
                      "%s was granted what is valid for %lld ms; its lease is %lld ms", one,
                      (long long)ms_of(until_ns - course->now_ns), (long long)lease_ms);
    else if (is_heard(course, client) && heard_within(course, client, lease_ms, until_ns - 1) < majority_of(course))
        promise_break(course, PROMISE_VALIDITY, ask, lease_ms, ms_of(until_ns - course->now_ns),
                      "%s was granted what is valid for %lld ms; a majority heard of it within its lease of %lld ms no "
                      "longer then",
                      one, (long long)ms_of(until_ns - course->now_ns), (long long)lease_ms);
}

static void check_executed(struct promise_course *course, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    char one[64];
    if (!is_heard(course, client)) return;
    int nodes = course->facts->nodes, recent = heard_within(course, client, lease_ms, course->now_ns);
    if (recent < majority_of(course))
        promise_break(course, PROMISE_VALIDITY, course->events[course->now].call, majority_of(course), recent,
                      "%s was granted what %d of %d servers heard of within its lease",
                      caller_text(&call->ask->asked, one, sizeof one), recent, nodes);
}

static void promise_validity_answered(struct promise_course *course) {
    const struct promise_call *call = course_answered(course);
    const struct call_event *event = &course->events[course->now];
    if (!call || call->ask->asked.verb != CALL_ACQUIRE || event->outcome != OUTCOME_OK || course->clock) return;
    int64_t lease_ms = lease_of_call(course, &call->ask->asked);
    if (lease_ms == PROMISE_ALWAYS || stood_still(course, call)) return;
    if (course->facts->validity && event->valid_until_ns) check_stated(course, call, event->valid_until_ns, lease_ms);
    else if (course->facts->nodes > 1) check_executed(course, call, lease_ms);
}

const struct promise_rule PROMISE_RULE_VALIDITY = {.on = {[EVENT_ANSWER] = promise_validity_answered}};
