/* Wait: an acquire that tries once answers without time passing; one that waits for a time, within that time. While it
 * is under way, both may take longer by three times: as long as a timer of the library may be late; as long as sleeps
 * and timers of the client were late together, since a library may wait in many steps; and twice as long as messages of
 * the client were late, or the client or a server stood still, since a library may time out meanwhile and ask again.
 * Where clients hold up each other at a server, as by a transaction that waits for a late command, those of others
 * count, too. An acquire that waits without a limit is not refused, unless it was cancelled, or something of that kind
 * happened meanwhile; if its lease is renewed, also in the lease before it, which may have ended a session that the
 * lock object has had since then.
 *
 * Not required of a client that had a message lost or answered with an error, after a server fault of that kind or
 * of clocks or data, or while another acquire of the same owner is under way. */
#include "checkers/promises/promise_rule.h"

static bool promise_wait_is_judged(const struct promise_pass *pass, const struct promise_call *call) {
    if (call->ask->asked.verb != CALL_ACQUIRE || call->crowded || call->connection_closed) return false;
    return !call->owner->client->lost_message && !servers_are_unreliable(pass);
}

static const char *form_text(const struct call *asked) {
    return asked->form ? asked->form : mode_text(asked->mode);
}

static void check_unlimited(struct promise_pass *pass, const struct promise_call *call, int64_t late_ns) {
    const struct call_event *answer = pass->event;
    if (answer->outcome != OUTCOME_REFUSED || answer->cancelled || call->cancelled || late_ns > 0) return;
    int64_t taken_ms = ms_of(pass->now_ns - call->ask->at_ns);
    promise_break(pass, PROMISE_WAIT, answer->call, 0, taken_ms,
                  "acquire (%s) of %s was refused after %lld ms; it was to wait without a limit",
                  form_text(&call->ask->asked), caller_name_of(&call->ask->asked).text, (long long)taken_ms);
}

static void check_limited(struct promise_pass *pass, const struct promise_call *call, int64_t late_ns) {
    const struct call *asked = &call->ask->asked;
    int64_t wait_ms = asked->wait == WAIT_TIME ? asked->wait_ms : 0;
    int64_t taken_ns = pass->now_ns - call->ask->at_ns;
    if (taken_ns <= after_ms(2 * late_ns + pass->event->timers_late_ns, wait_ms + timer_ms(pass))) return;
    promise_break(pass, PROMISE_WAIT, pass->event->call, wait_ms, ms_of(taken_ns),
                  "acquire (%s) of %s took %lld ms; it was to wait for %lld ms", form_text(asked),
                  caller_name_of(asked).text, (long long)ms_of(taken_ns), (long long)wait_ms);
}

static void promise_wait_answered(struct promise_pass *pass) {
    const struct promise_call *call = answered_call(pass);
    if (!call || !promise_wait_is_judged(pass, call)) return;
    bool unlimited = call->ask->asked.wait == WAIT_FOREVER;
    int64_t session_ns = unlimited && is_renewed(&call->ask->asked) ? after_ms(0, pass->facts->default_lease_ms) : 0;
    int64_t late_ns = held_up_ns(pass, call->owner->client, call->ask->at_ns - session_ns, pass->now_ns);
    if (late_ns == PROMISE_ALWAYS) return;
    if (unlimited) check_unlimited(pass, call, late_ns);
    else check_limited(pass, call, late_ns);
}

const struct promise_rule PROMISE_RULE_WAIT = {.on = {[EVENT_ANSWER] = promise_wait_answered}};
