#include "checkers/promises/promise_traces.h"

static int64_t latest(int64_t one_ns, int64_t other_ns) {
    return one_ns > other_ns ? one_ns : other_ns;
}

/* What is left of a lease that was set at `from_ns` at the latest. */
static int64_t fading(const struct promise_course *course, int64_t lease_ms, int64_t from_ns) {
    if (lease_ms == PROMISE_ALWAYS || from_ns >= course->now_ns) return lease_ms;
    int64_t gone_ms = ms_of(course->now_ns - from_ns);
    return gone_ms >= lease_ms ? 0 : lease_ms - gone_ms;
}

/* When a call of the owner may have set the lease of what it has, at the latest. A release under way may have done so,
 * also just now if it was struck: an inner one of Redisson's locks sets the whole lease. */
static int64_t last_set_ns(const struct promise_course *course, const struct promise_owner *owner) {
    int64_t set_ns = owner->touched_ns;
    for (uint32_t at = owner->releasing > 0 ? owner->began : course->now; at < course->now; at++) {
        const struct promise_call *call = &course->calls[at];
        if (call->owner != owner || !is_under_way(call) || call->ask->asked.verb != CALL_RELEASE) continue;
        set_ns = latest(set_ns, call->struck ? course->now_ns : call->ask->at_ns);
    }
    return set_ns;
}

bool leaves_trace(const struct promise_call *call) {
    return call->ask && (call->ask->asked.verb == CALL_ACQUIRE || call->ask->asked.verb == CALL_RENEW);
}

static bool was_answered(const struct promise_course *course, const struct promise_call *call, enum outcome outcome) {
    return call->ask && call->answer && call->ask->asked.verb == CALL_ACQUIRE &&
           course->events[call->answer].outcome == outcome;
}

bool was_cancelled(const struct promise_course *course, const struct promise_call *call) {
    bool granted = was_answered(course, call, OUTCOME_OK);
    return call->answer && call->ask->asked.verb == CALL_ACQUIRE && !granted &&
           (call->cancelled || course->events[call->answer].cancelled);
}

bool was_refused(const struct promise_course *course, const struct promise_call *call) {
    return was_answered(course, call, OUTCOME_REFUSED);
}

static bool may_be_struck(const struct promise_course *course, const struct promise_client *client) {
    return client->cut || course->server_cut || is_struck(course, client);
}

/* Whether the owner may still have what the call was granted: also if only another call of it is under way, which may
 * have been granted without an answer. */
static bool may_have(const struct promise_course *course, const struct promise_call *call) {
    const struct promise_owner *owner = call->owner;
    return (may_hold(owner) || owner->pending > 0) && call->ask >= &course->events[owner->began];
}

/* Whether the call, which is under way, may have been granted without an answer: its client also loses an answer with a
 * connection that it closes itself. */
static bool may_be_unheard(const struct promise_course *course, const struct promise_call *call) {
    return call->cut || may_be_struck(course, call->owner->client);
}

bool is_outstanding(const struct promise_course *course, const struct promise_call *call) {
    if (!leaves_trace(call)) return false;
    if (!call->answer) return call->owner->client->gone_ns != PROMISE_ALWAYS || may_be_unheard(course, call);
    if (course->events[call->answer].outcome != OUTCOME_OK) return false;
    return may_have(course, call);
}

/* Whether the wait was over, or was ended, before the answer: perhaps while a command was under way. */
static bool was_given_up(const struct promise_course *course, const struct promise_call *call) {
    const struct call *asked = &call->ask->asked;
    int64_t answered_ns = course->events[call->answer].at_ns;
    bool over = asked->wait == WAIT_TIME && after_ms(call->ask->at_ns, asked->wait_ms) <= answered_ns;
    return over || was_cancelled(course, call);
}

/* Whether the library may have been unable to take back what a refused acquire was granted: its command was executed
 * late or twice, two messages were lost, or one and the wait was given up. */
static bool is_excused(const struct promise_course *course, const struct promise_call *call) {
    int lost = 0;
    for (uint32_t at = call->strikes; at < course->strike_count; at++) {
        const struct call_event *event = course->strikes[at].event;
        bool late = event->kind == EVENT_LATE;
        if (event->client != call->owner->client->client && (late || event->client != ANY_SERVER)) continue;
        if (late && event->until_ns != LATE_FOR_EVER) {
            if (!event->reply) return true;
            continue;
        }
        if (!late && event->effect == FAULT_STILL) continue;
        if (!late && event->effect != FAULT_LOST) return true;
        if (++lost > 1 || was_given_up(course, call)) return true;
    }
    return false;
}

static int64_t trace_under_way(const struct promise_course *course, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    if (client->gone_ns != PROMISE_ALWAYS) return fading(course, lease_ms, latest(client->gone_ns, client->ghost_ns));
    /* At a quiet moment a waiter with all its messages has nothing, or it would have been answered. */
    bool waits = course->facts->nodes <= 1 && !course->facts->parts && !may_be_unheard(course, call) &&
                 call->ask->at_ns < course->now_ns;
    if (!waits) return lease_ms;
    /* Unless a command that it no longer expects an answer to was granted. */
    return client->ghost_ns >= call->ask->at_ns ? fading(course, lease_ms, client->ghost_ns) : 0;
}

static int64_t trace_ok(const struct promise_course *course, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_owner *owner = call->owner;
    const struct promise_client *client = owner->client;
    int64_t touched_ns = latest(last_set_ns(course, owner), client->ghost_ns);
    if (!may_have(course, call)) return lease_ms == PROMISE_ALWAYS ? 0 : fading(course, lease_ms, touched_ns);
    if (!is_renewed(&call->ask->asked)) return fading(course, lease_ms, touched_ns);
    if (client->gone_ns != PROMISE_ALWAYS) return fading(course, lease_ms, latest(client->gone_ns, client->ghost_ns));
    return lease_ms;
}

/* Whether a struck call may have re-entered a hold of its owner, also of a later acquire. A late re-entry may set the
 * lease of what the owner has, and giving it back leaves that. */
static bool may_have_entered(const struct promise_course *course, const struct promise_call *call) {
    if (!call->struck || !call->alone) return call->struck;
    for (uint32_t at = (uint32_t)(call->ask - course->events) + 1; at <= course->now; at++) {
        const struct promise_call *each = &course->calls[at];
        if (!each->ask || each->owner != call->owner || each->ask->asked.verb != CALL_ACQUIRE) continue;
        if (!each->answer || course->events[each->answer].outcome == OUTCOME_OK) return true;
    }
    return false;
}

static int64_t trace_unknown(const struct promise_course *course, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    int64_t from_ns = latest(latest(course->events[call->answer].at_ns, client->ghost_ns),
                             client->gone_ns == PROMISE_ALWAYS ? INT64_MIN : client->gone_ns);
    bool ends = lease_ms != PROMISE_ALWAYS;
    if (was_cancelled(course, call)) {
        bool excused = is_struck(course, client) || client->cut || may_have_entered(course, call);
        if (!ends) return excused ? PROMISE_ALWAYS : 0;
        return fading(course, lease_ms, from_ns);
    }
    if (!may_hold(call->owner))
        return ends ? fading(course, lease_ms, latest(from_ns, last_set_ns(course, call->owner))) : 0;
    if (is_renewed(&call->ask->asked) && client->gone_ns == PROMISE_ALWAYS) return lease_ms;
    return fading(course, lease_ms, latest(from_ns, last_set_ns(course, call->owner)));
}

static int64_t trace_refused(const struct promise_course *course, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    int64_t from_ns = latest(course->events[call->answer].at_ns, client->ghost_ns);
    if (call->ask->asked.verb == CALL_RENEW) return call->struck ? fading(course, lease_ms, from_ns) : 0;
    if (course->facts->nodes > 1) return fading(course, lease_ms, from_ns);
    if (is_struck(course, client)) return lease_ms;
    if (may_have_entered(course, call))
        return fading(course, lease_ms, latest(from_ns, last_set_ns(course, call->owner)));
    return is_excused(course, call) ? fading(course, lease_ms, from_ns) : 0;
}

/* Whether its key was seen to be gone after the call, and after all that may have come late. */
static bool was_seen_gone(const struct promise_course *course, const struct promise_call *call) {
    const struct promise_resource *resource = resource_known(course, call->ask->asked.resource);
    const struct promise_client *client = call->owner->client;
    if (!resource || is_outstanding(course, call) || is_struck(course, client)) return false;
    return course->facts->nodes <= 1 && resource->absent > call->answer && resource->absent_ns >= client->ghost_ns;
}

int64_t trace_ms(const struct promise_course *course, const struct promise_call *call) {
    if (!leaves_trace(call)) return 0;
    int64_t lease_ms = lease_of_call(course, &call->ask->asked);
    if (!call->answer) return trace_under_way(course, call, lease_ms);
    if (was_seen_gone(course, call)) return 0;
    switch (course->events[call->answer].outcome) {
    case OUTCOME_OK: return trace_ok(course, call, lease_ms);
    case OUTCOME_REFUSED: return trace_refused(course, call, lease_ms);
    case OUTCOME_UNKNOWN: return trace_unknown(course, call, lease_ms);
    }
    return lease_ms;
}
