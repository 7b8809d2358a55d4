/* Fairness, of libraries that grant in the order of requests (`fair`): an acquire was answered ok, and another owner's,
 * which was asked more than FAIRNESS_ORDER_MS before this one, still waits. Time passes only when no message is under
 * way, so that one's request had reached the server first.
 *
 * Judged with one server, where nothing was struck so far, of exclusive and write grants. An acquire that tries once
 * may pass by a queue, and an owner that may have held already need not wait. */
#include "checkers/promises/promise_rule.h"

enum { FAIRNESS_ORDER_MS = 50 };

static bool was_passed(const struct promise_call *waiter, const struct promise_call *granted) {
    if (!waiter->ask || waiter->answer || waiter->resource != granted->resource || waiter->owner == granted->owner)
        return false;
    const struct call *asked = &waiter->ask->asked;
    bool waits = asked->verb == CALL_ACQUIRE && asked->wait != WAIT_NONE && !waiter->cancelled;
    return waits && excludes_readers(asked->mode) &&
           after_ms(waiter->ask->at_ns, FAIRNESS_ORDER_MS) < granted->ask->at_ns;
}

static void promise_fairness_answered(struct promise_pass *pass) {
    const struct promise_call *granted = granted_call(pass);
    if (!granted || !pass->facts->fair || pass->facts->nodes > 1 || pass->disturbance_count > 0) return;
    const struct call *asked = &granted->ask->asked;
    if (asked->wait == WAIT_NONE || !excludes_readers(asked->mode) || !granted->alone) return;
    for (const struct promise_call *waiter = pass->calls; waiter < pass->calls + pass->now; waiter++) {
        if (!was_passed(waiter, granted)) continue;
        int64_t later_ms = ms_of(granted->ask->at_ns - waiter->ask->at_ns);
        promise_break(pass, PROMISE_FAIRNESS, (uint32_t)(waiter->ask - pass->events), 0, later_ms,
                      "%s was granted the lock, asked for %lld ms after %s, which still waits",
                      caller_name_of(asked).text, (long long)later_ms, caller_name_of(&waiter->ask->asked).text);
        return;
    }
}

const struct promise_rule PROMISE_RULE_FAIRNESS = {.on = {[EVENT_ANSWER] = promise_fairness_answered}};
