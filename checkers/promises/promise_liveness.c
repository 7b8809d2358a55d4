/* Liveness: a waiter beside a free lock is served within two of the longest leases that were asked for (or the
 * library's default, if that is longer; a minute without a default), counted from an EVENT_IDLE. All the time the
 * acquire was under way, no call may have had a hold, nothing was granted and nothing was disturbed. Judged at each
 * later EVENT_IDLE, and, because nothing happens between an EVENT_IDLE and the event after it, also there: a library
 * that sleeps through its whole wait shows itself at no other moment. A wait that has a limit counts up to it.
 * Where a release wakes waiters (`told`) and nothing struck before, the bound is 100 ms and a timer of the library,
 * from a release that was answered ok. All that was granted has to be given back by then, the lease key, if there is
 * one, has to be seen absent after it, and no other acquire that waited may have ended since that release was asked: it
 * may have taken the wake-up. What a cancelled acquire left in the way is `cancel`, what a refused one left whose
 * messages were late or lost is `refusal`.
 *
 * If the library states the longest time between two tries of a waiter (poll_ms), that, with the same 100 ms and timer,
 * is the bound instead of two leases. Of several servers, or parts, each of two waiters may have some: there it counts
 * only for one that waits alone.
 *
 * Not judged after a fault of a server other than a standstill, or of clocks; of a client that had a message lost or
 * answered with an error, or that closed a connection because a message on it was late; and beside other clients that
 * such a fault disturbed, or that ended, while an acquire of theirs was not granted: their place in a queue may stay.
 *
 * Place: if the library says how long the place of a client that has ended may stay (place_ms), waiters are served as
 * above from that moment on. */
#include "checkers/promises/promise_rule.h"

static bool may_keep_place(const struct promise_pass *pass, const struct promise_client *client) {
    int64_t place_ms = pass->facts->place_ms;
    return has_ended(client) && !(place_ms && pass->now_ns >= after_ms(client->ended_ns, place_ms));
}

/* Is the acquire in the way of others, though nobody holds? */
static bool left_place(const struct promise_pass *pass, const struct promise_call *call) {
    const struct promise_client *client = call->owner->client;
    bool granted = call->answer && pass->events[call->answer].outcome == OUTCOME_OK;
    return call->ask->asked.verb == CALL_ACQUIRE && !granted &&
           (may_have_missed(client) || may_keep_place(pass, client));
}

static int64_t wait_limit_ns(const struct promise_call *waiter) {
    const struct call *asked = &waiter->ask->asked;
    return asked->wait == WAIT_FOREVER ? PROMISE_ALWAYS : after_ms(waiter->ask->at_ns, asked->wait_ms);
}

static bool is_waiter(const struct promise_pass *pass, const struct promise_call *call) {
    const struct call *asked = &call->ask->asked;
    const struct promise_client *client = call->owner->client;
    if (call->answer || asked->verb != CALL_ACQUIRE || asked->wait == WAIT_NONE || call->cancelled) return false;
    if (may_have_missed(client) || has_ended(client) || may_hold(call->owner)) return false;
    return wait_limit_ns(call) > pass->now_ns;
}

/* When what earlier calls may have left at the servers has run out, if nothing happens. */
static int64_t traces_end_ns(const struct promise_pass *pass, int resource) {
    int64_t end_ns = pass->now_ns;
    for (const struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        if (!call->ask || call->ask->asked.resource != resource) continue;
        bool unexpected = call->owner->client->late_command_ns >= call->ask->at_ns;
        if (call->answer || unexpected) end_ns = latest(end_ns, after_ms(pass->now_ns, trace_ms(pass, call)));
    }
    return end_ns;
}

/* ... and whether nothing keeps it alive up to then: some of it does not fade. */
static bool have_traces_ended(struct promise_pass *pass, int resource, int64_t at_ns) {
    int64_t now_ns = pass->now_ns;
    pass->now_ns = at_ns;
    bool ended = traces_end_ns(pass, resource) == at_ns;
    pass->now_ns = now_ns;
    return ended;
}

/* The waiter that has waited longest while no call stands in its way; NULL: nobody waits so. */
static const struct promise_call *unhindered_waiter(const struct promise_pass *pass, int resource) {
    const struct promise_call *first = NULL;
    for (const struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        if (!call->ask || call->ask->asked.resource != resource) continue;
        if (left_place(pass, call) || is_disturbed(pass, call->owner->client)) return NULL;
        if (!first && is_waiter(pass, call)) first = call;
    }
    return first;
}

static void break_liveness(struct promise_pass *pass, const struct promise_call *waiter, int64_t bound_ms,
                           int64_t from_ns, int64_t until_ns) {
    enum promise promise = PROMISE_LIVENESS;
    uint32_t other = (uint32_t)(waiter->ask - pass->events);
    for (uint32_t at = 0; at < pass->now; at++) {
        const struct promise_call *call = &pass->calls[at];
        if (!call->ask || call->owner->resource != waiter->owner->resource) continue;
        if (was_cancelled(pass, call)) promise = PROMISE_CANCEL, other = at;
        else if (promise == PROMISE_LIVENESS && has_ended(call->owner->client) &&
                 call->ask->asked.verb == CALL_ACQUIRE && !call->answer)
            promise = PROMISE_PLACE, other = at;
        else if (promise == PROMISE_LIVENESS && was_refused(pass, call) && call->disturbed)
            promise = PROMISE_REFUSAL, other = at;
    }
    promise_break(pass, promise, other, bound_ms, ms_of(until_ns - from_ns),
                  "%s waits beside a free lock for %lld ms%s", caller_name_of(&waiter->ask->asked).text,
                  (long long)ms_of(until_ns - from_ns),
                  promise == PROMISE_LIVENESS ? ""
                  : promise == PROMISE_PLACE  ? ", since a client that has ended keeps its place"
                                              : ", since another acquire was not granted");
}

enum { WAKE_UP_MS = 100 };

/* The stamp of the release that has to wake a waiter; PROMISE_ALWAYS: that is not known. */
static int64_t woken_from_ns(const struct promise_pass *pass, const struct promise_resource *resource) {
    const struct promise_call *release = NULL;
    uint32_t ended = 0; /* the latest answer to an acquire that had waited in vain */
    if (!pass->facts->told || pass->facts->nodes > 1 || pass->disturbance_count > 0) return PROMISE_ALWAYS;
    for (const struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        if (!call->ask || call->resource != resource) continue;
        const struct call *asked = &call->ask->asked;
        bool ok = call->answer && pass->events[call->answer].outcome == OUTCOME_OK;
        bool waits = asked->verb == CALL_ACQUIRE && asked->wait != WAIT_NONE;
        if (may_hold(call->owner) || (!call->answer && (!waits || call->cancelled))) return PROMISE_ALWAYS;
        if (waits && call->answer && !ok && call->answer > ended) ended = call->answer;
        if (asked->verb == CALL_RELEASE && ok && (!release || call->answer > release->answer)) release = call;
    }
    bool seen = release && (!pass->facts->lease_key || resource->absent > release->answer);
    return seen && &pass->events[ended] < release->ask ? pass->events[release->answer].at_ns : PROMISE_ALWAYS;
}

static void check_wake_up(struct promise_pass *pass, struct promise_resource *resource,
                          const struct promise_call *waiter, int64_t idle_until_ns) {
    int64_t woken_ns = woken_from_ns(pass, resource), bound_ms = WAKE_UP_MS + timer_ms(pass);
    int64_t from_ns = latest(woken_ns, waiter->ask->at_ns), limit_ns = wait_limit_ns(waiter);
    int64_t until_ns = limit_ns < idle_until_ns ? limit_ns : idle_until_ns;
    if (woken_ns == PROMISE_ALWAYS || woken_ns == resource->woken_ns || until_ns <= after_ms(from_ns, bound_ms)) return;
    resource->woken_ns = woken_ns;
    break_liveness(pass, waiter, bound_ms, from_ns, until_ns);
}

/* How long the waiter may go on waiting beside a free lock. */
static int64_t wait_bound_ms(const struct promise_pass *pass, const struct promise_resource *resource,
                             const struct promise_call *waiter) {
    const struct library_facts *facts = pass->facts;
    int64_t leases_ms = two_leases_ms(pass, resource), tries_ms = facts->poll_ms + WAKE_UP_MS + timer_ms(pass);
    if (!facts->poll_ms || tries_ms > leases_ms) return leases_ms;
    for (const struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        bool shares = call != waiter && (facts->nodes > 1 || facts->parts);
        if (shares && is_under_way(call) && call->resource == resource && call->ask->asked.verb == CALL_ACQUIRE)
            return leases_ms;
    }
    return tries_ms;
}

/* What is known stays so until then. */
static void check_waits_until(struct promise_pass *pass, int64_t idle_until_ns) {
    for (uint32_t at = 0; at < pass->resource_count; at++) {
        struct promise_resource *resource = &pass->resources[at];
        const struct promise_call *waiter = unhindered_waiter(pass, resource->resource);
        if (!waiter || servers_are_unreliable(pass) || !have_traces_ended(pass, resource->resource, idle_until_ns)) {
            resource->idle_ns = PROMISE_ALWAYS;
            if (waiter) check_wake_up(pass, resource, waiter, idle_until_ns);
            continue;
        }
        if (resource->idle_ns == PROMISE_ALWAYS) resource->idle_ns = traces_end_ns(pass, resource->resource);
        int64_t bound_ms = wait_bound_ms(pass, resource, waiter);
        int64_t from_ns = resource->idle_ns > waiter->ask->at_ns ? resource->idle_ns : waiter->ask->at_ns;
        int64_t limit_ns = wait_limit_ns(waiter), until_ns = limit_ns < idle_until_ns ? limit_ns : idle_until_ns;
        if (until_ns <= after_ms(from_ns, bound_ms)) {
            check_wake_up(pass, resource, waiter, idle_until_ns);
            continue;
        }
        break_liveness(pass, waiter, bound_ms, from_ns, until_ns);
        resource->idle_ns = idle_until_ns;
    }
}

static void check_waits(struct promise_pass *pass) {
    check_waits_until(pass, pass->now_ns);
}

static void check_waits_passed(struct promise_pass *pass) {
    check_waits_until(pass, pass->events[pass->now].at_ns);
}

static void promise_liveness_granted(struct promise_pass *pass) {
    const struct promise_call *call = granted_call(pass);
    if (call) call->resource->idle_ns = PROMISE_ALWAYS;
}

static void restart_waits(struct promise_pass *pass) {
    for (uint32_t at = 0; at < pass->resource_count; at++) pass->resources[at].idle_ns = PROMISE_ALWAYS;
}

const struct promise_rule PROMISE_RULE_LIVENESS = {.idle_passes = check_waits_passed,
                                                   .on = {[EVENT_IDLE] = check_waits,
                                                          [EVENT_ANSWER] = promise_liveness_granted,
                                                          [EVENT_FAULT] = restart_waits,
                                                          [EVENT_LATE] = restart_waits}};
