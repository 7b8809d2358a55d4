/* Answer: each call is answered. Seen at EVENT_IDLE and EVENT_END: a call has been under way for two of the longest
 * leases (or the default; four seconds at least, a minute without a default) longer than it was to wait (of a cancelled
 * acquire: than since its cancellation), and than its client or a server was disturbed twice over; as in `wait`, others
 * count where clients hold up each other. An acquire without a limit that was not cancelled is judged by liveness.
 *
 * Not judged: clients that ended, that are disturbed now, or that had a message lost or answered with an error;
 * after a server fault other than a standstill, or of clocks; and while another acquire of the same owner is under way.
 */
#include "checkers/promises/promise_rule.h"

/* However short the lease is, a library may try as often as it usually does. */
enum { ANSWER_LEAST_MS = 4000 };

static bool promise_answer_is_judged(const struct promise_pass *pass, const struct promise_call *call) {
    const struct promise_client *client = call->owner->client;
    const struct call *asked = &call->ask->asked;
    bool waits = asked->verb == CALL_ACQUIRE && asked->wait == WAIT_FOREVER && !call->cancelled;
    int others = call->owner->pending - (asked->verb == CALL_ACQUIRE ? 1 : 0);
    return !waits && others <= 0 && !client->lost_message && !has_ended(client) && !is_disturbed(pass, client);
}

static void check_answers(struct promise_pass *pass) {
    if (servers_are_unreliable(pass)) return;
    for (uint32_t at = 0; at < pass->now; at++) {
        struct promise_call *call = &pass->calls[at];
        if (!is_under_way(call) || call->counted || call->connection_closed || !promise_answer_is_judged(pass, call))
            continue;
        const struct call *asked = &call->ask->asked;
        int64_t bound_ms = two_leases_ms(pass, call->resource);
        if (bound_ms < ANSWER_LEAST_MS) bound_ms = ANSWER_LEAST_MS;
        bool timed = asked->verb == CALL_WORK || (asked->verb == CALL_ACQUIRE && asked->wait == WAIT_TIME);
        int64_t from_ns = call->cancelled ? pass->events[call->cancelled].at_ns : call->ask->at_ns;
        int64_t wait_ms = timed && !call->cancelled ? asked->wait_ms : 0;
        int64_t late_ns = held_up_ns(pass, call->owner->client, call->ask->at_ns, pass->now_ns);
        if (late_ns == PROMISE_ALWAYS || pass->now_ns <= after_ms(after_ms(from_ns + 2 * late_ns, wait_ms), bound_ms))
            continue;
        call->counted = true;
        promise_break(pass, PROMISE_ANSWER, at, wait_ms + bound_ms, ms_of(pass->now_ns - from_ns),
                      "a call of %s has no answer after %lld ms", caller_name_of(asked).text,
                      (long long)ms_of(pass->now_ns - from_ns));
    }
}

const struct promise_rule PROMISE_RULE_ANSWER = {.on = {[EVENT_IDLE] = check_answers, [EVENT_END] = check_answers}};
