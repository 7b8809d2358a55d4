/* Availability, a part of liveness: a lock of a majority of servers is granted while a minority of them is down for
 * good. Judged where nothing else has struck: of an acquire that is alone, beside a lock that nobody can have, as it is
 * answered without a grant, and at each EVENT_IDLE while it waits.
 *
 * Nobody can have the lock when each other call about it was answered, and then, after a release that was answered ok,
 * an EVENT_IDLE has come (some libraries answer before all servers have), or else the longest lease has passed; no
 * grant that a watchdog keeps, or that has no end, may be left. If it was free when the acquire was asked, and the
 * servers that are down refuse connections, which takes no time, any answer has to be a grant. Otherwise the acquire is
 * granted within the time between two tries (poll_ms) and 2 s, for which its client may go on trying to connect to a
 * server that is down, or, without that and if a server is silent, within two of the longest leases. A silent server
 * costs each try as long as its client waits for an answer: a lease of less than two seconds may be over by then, and
 * is not judged. */
#include "checkers/promises/promise_rule.h"

enum { AT_ONCE = -1, AVAILABLE_TRY_MS = 2000, SILENT_LEASE_LEAST_MS = 2000 };

/* The moment of that event; if it comes after the acquire was asked, a little later, so that it is not the same. */
static int64_t since_event_ns(const struct promise_pass *pass, const struct promise_call *acquire, uint32_t event) {
    return pass->events[event].at_ns + (&pass->events[event] > acquire->ask);
}

static bool is_given_back(const struct promise_pass *pass, const struct promise_call *call) {
    bool nests = pass->facts->reenters || pass->facts->write_reads;
    for (const struct promise_call *each = call; each < pass->calls + pass->now; each++) {
        bool releases = each->ask && each->owner == call->owner && each->ask->asked.verb == CALL_RELEASE;
        if (releases && each->answer && pass->events[each->answer].outcome == OUTCOME_OK) return each == call || !nests;
    }
    return false;
}

/* When what another call may have left is gone; PROMISE_ALWAYS: that is not known. */
static int64_t gone_from_ns(const struct promise_pass *pass, const struct promise_call *acquire,
                            const struct promise_call *call) {
    if (!call->answer) return PROMISE_ALWAYS;
    enum outcome outcome = pass->events[call->answer].outcome;
    bool given_back = outcome == OUTCOME_OK && is_given_back(pass, call);
    for (uint32_t at = call->answer; at <= pass->now && given_back; at++)
        if (pass->events[at].kind == EVENT_IDLE) return since_event_ns(pass, acquire, at);
    bool endless = lease_of_call(pass, &call->ask->asked) == PROMISE_ALWAYS;
    bool may_last = endless || (is_renewed(&call->ask->asked) && outcome != OUTCOME_REFUSED && !given_back);
    if (takes_lease(&call->ask->asked) && may_last) return PROMISE_ALWAYS;
    return after_ms(pass->events[call->answer].at_ns, two_leases_ms(pass, call->resource) / 2);
}

/* Since when the acquire can be granted. */
static int64_t available_from_ns(const struct promise_pass *pass, const struct promise_call *acquire) {
    int64_t from_ns = latest(acquire->ask->at_ns, since_event_ns(pass, acquire, pass->down));
    for (const struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        bool uses = call->ask && call != acquire && call->resource == acquire->resource &&
                    call->ask->asked.verb != CALL_WORK && call->ask->asked.verb != CALL_CANCEL;
        if (uses) from_ns = latest(from_ns, gone_from_ns(pass, acquire, call));
    }
    return from_ns;
}

static bool availability_is_judged(const struct promise_pass *pass, const struct promise_call *call) {
    const struct call *asked = &call->ask->asked;
    bool only = pass->servers_down > 0 && pass->servers_down == pass->disturbance_count;
    if (!only || asked->verb != CALL_ACQUIRE || asked->over || call->cancelled || call->counted) return false;
    return !pass->silent || lease_of_call(pass, asked) >= SILENT_LEASE_LEAST_MS;
}

static int64_t available_within_ms(const struct promise_pass *pass, const struct promise_call *call, int64_t from_ns) {
    int64_t poll_ms = pass->facts->poll_ms;
    if (!pass->silent && call->answer && from_ns == call->ask->at_ns) return AT_ONCE;
    return poll_ms && !pass->silent ? poll_ms + AVAILABLE_TRY_MS + timer_ms(pass) : two_leases_ms(pass, call->resource);
}

static void check_availability(struct promise_pass *pass, struct promise_call *call, int64_t until_ns) {
    if (!availability_is_judged(pass, call)) return;
    int64_t from_ns = available_from_ns(pass, call);
    if (from_ns == PROMISE_ALWAYS) return;
    int64_t bound_ms = available_within_ms(pass, call, from_ns);
    if (bound_ms != AT_ONCE && until_ns <= after_ms(from_ns, bound_ms)) return;
    call->counted = true;
    promise_break(pass, PROMISE_LIVENESS, (uint32_t)(call->ask - pass->events), bound_ms == AT_ONCE ? 0 : bound_ms,
                  ms_of(until_ns - from_ns), "%s is not granted the free lock while %u of %d servers %s down",
                  caller_name_of(&call->ask->asked).text, pass->servers_down, servers_of(pass),
                  pass->servers_down == 1 ? "is" : "are");
}

static void check_answered(struct promise_pass *pass) {
    struct promise_call *call = answered_call(pass);
    if (call && pass->event->outcome != OUTCOME_OK && !pass->event->cancelled)
        check_availability(pass, call, pass->now_ns);
}

static void check_waiting(struct promise_pass *pass) {
    for (struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++)
        if (is_under_way(call)) check_availability(pass, call, pass->now_ns);
}

const struct promise_rule PROMISE_RULE_AVAILABILITY = {
    .on = {[EVENT_IDLE] = check_waiting, [EVENT_ANSWER] = check_answered, [EVENT_END] = check_waiting}};
