/* Wait: an acquire that tries once answers without time passing; one that waits for a time, within that time. Both may
 * take as long as a timer of the library may be late, and twice as long as messages of the client were late, or the
 * client or a server stood still, while it was under way: a library may time out meanwhile and ask again.
 *
 * Not required of a client of which a message was lost or answered with an error, after a server fault of that kind or
 * of clocks or data, or while another acquire of the same owner is under way. */
#include "checkers/promises/promise_rule.h"

extern const struct promise_rule PROMISE_RULE_WAIT;

static bool is_judged(const struct promise_course *course, const struct promise_call *call) {
    const struct promise_client *client = call->owner->client;
    if (call->ask->asked.verb != CALL_ACQUIRE || call->ask->asked.wait == WAIT_FOREVER || call->crowded) return false;
    return !client->cut && !course->server_cut && !course->clock && !course->data;
}

static void answered(struct promise_course *course) {
    const struct promise_call *call = course_answered(course);
    if (!call || !is_judged(course, call)) return;
    const struct call *asked = &call->ask->asked;
    int64_t late_ns = struck_ns(course, call->owner->client, call->ask->at_ns, course->now_ns);
    if (late_ns == PROMISE_ALWAYS) return;
    int64_t wait_ms = asked->wait == WAIT_TIME ? asked->wait_ms : 0;
    int64_t taken_ns = course->now_ns - call->ask->at_ns;
    int64_t most_ns = after_ms(2 * late_ns, wait_ms + timer_ms(course));
    char one[64];
    if (taken_ns > most_ns)
        promise_break(course, PROMISE_WAIT, course->events[course->now].call, wait_ms, ms_of(taken_ns),
                      "acquire (%s) of %s took %lld ms; it was to wait for %lld ms",
                      asked->form ? asked->form : mode_text(asked->mode), caller_text(asked, one, sizeof one),
                      (long long)ms_of(taken_ns), (long long)wait_ms);
}

const struct promise_rule PROMISE_RULE_WAIT = {.on = {[EVENT_ANSWER] = answered}};
