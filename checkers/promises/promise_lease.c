/* Leases at the servers, where every hold of a resource needs a key (`lease_key`). EVENT_LEASE says how long that
 * lives.
 *
 * Too short (lease-too-short; renewal if the watchdog is to keep it): an owner certainly holds, and the key is absent
 * or lives less than until the end of its lease, less the rounding; of a renewed hold, less than a renewed lease has
 * left before the watchdog must have renewed it (half a period late), less what was late. With several servers: at more
 * servers than a majority can do without, all asked at that moment.
 *
 * Too long (lease-too-long): the key lives longer than any call can have asked for that may have a hold, and a
 * rounding. A given lease counts from the latest answer of its owner, from its release under way, and from a command
 * that arrived late; a renewed one is whole while its hold may last. Without an end (lease-endless): the key has none,
 * and no such call asked for that.
 *
 * If no call may have a hold any more, the key is a leftover: of a cancelled acquire (cancel), of a watchdog that goes
 * on after the last release (renewal), or of a refused acquire (refusal). Only with one server.
 *
 * Not judged after a server may have lost data; too long not after a clock was set, and too short not after a server's
 * was. */
#include <stdio.h>

#include "checkers/promises/promise_rule.h"

/* --- too short --- */

/* How long the key has to live at least because of the owner's hold; 0: nothing is required. */
static int64_t required_ms(const struct promise_pass *pass, const struct promise_owner *owner, bool *watchdog) {
    int64_t least_ms = PROMISE_ALWAYS;
    if (owner->end_ns != PROMISE_ALWAYS) least_ms = ms_of(owner->end_ns - pass->now_ns);
    *watchdog = false;
    if (!owner->renewed) return least_ms;
    int64_t lost_ms = ms_of(disturbed_ns(pass, owner->client, owner->since_ns, PROMISE_ALWAYS));
    int64_t left_ms = watchdog_spare_ms(pass) - lost_ms - timer_ms(pass) - grain_ms(pass);
    if (left_ms < 1) left_ms = 1;
    *watchdog = left_ms < least_ms;
    return *watchdog ? left_ms : least_ms;
}

static bool is_shorter(int64_t remaining_ms, int64_t least_ms) {
    static const int64_t YEAR_MS = 365LL * 24 * 3600 * 1000;
    if (remaining_ms == LEASE_WITHOUT_END) return false;
    if (remaining_ms == LEASE_NO_KEY) return least_ms > 0;
    return least_ms == PROMISE_ALWAYS ? remaining_ms < YEAR_MS : remaining_ms + 1 < least_ms;
}

/* How many servers said so at this moment, the present event being the last of them. They may have been asked before at
 * the same moment. */
static int shorter_at(const struct promise_pass *pass, int64_t least_ms) {
    const struct call_event *last = pass->event;
    int shorter = 0;
    for (uint32_t at = pass->now + 1; at-- > 0;) {
        const struct call_event *each = &pass->events[at];
        if (each->kind != EVENT_LEASE || each->resource != last->resource || each->at_ns != last->at_ns) break;
        if (at < pass->now && each->node == last->node) break;
        shorter += is_shorter(each->remaining_ms, least_ms);
    }
    return shorter;
}

static bool is_last_of_moment(const struct promise_pass *pass) {
    const struct call_event *event = pass->event, *next = event + 1;
    return pass->now + 1 == pass->count || next->kind != EVENT_LEASE || next->resource != event->resource ||
           next->at_ns != event->at_ns;
}

/* The latest release that another client asked for since the grant: it may have removed the key. NULL: nobody did. */
static const struct promise_call *release_of_others(const struct promise_pass *pass, uint32_t grant) {
    const struct promise_call *held = &pass->calls[pass->events[grant].call];
    for (uint32_t at = pass->now; at-- > grant;) {
        const struct promise_call *call = &pass->calls[at];
        if (!call->ask || call->ask->asked.verb != CALL_RELEASE || call->resource != held->resource) continue;
        if (call->owner->client != held->owner->client) return call;
    }
    return NULL;
}

static void break_short(struct promise_pass *pass, uint32_t grant, int64_t least_ms, bool watchdog) {
    int64_t remaining_ms = pass->event->remaining_ms;
    const struct promise_call *other = remaining_ms == LEASE_NO_KEY ? release_of_others(pass, grant) : NULL;
    char key[64] = "is gone", asked[64] = "a lease without an end was asked for";
    if (remaining_ms != LEASE_NO_KEY) snprintf(key, sizeof key, "lives for %lld ms", (long long)remaining_ms);
    if (least_ms != PROMISE_ALWAYS)
        snprintf(asked, sizeof asked, "%lld ms at least were asked for", (long long)least_ms);
    promise_break(pass, watchdog ? PROMISE_RENEWAL : PROMISE_LEASE_SHORT, grant, least_ms, remaining_ms,
                  "%s certainly holds, and its key %s%s%s; %s%s",
                  caller_name_of(&pass->calls[pass->events[grant].call].ask->asked).text, key,
                  other ? " after a release of " : "", other ? caller_name_of(&other->ask->asked).text : "", asked,
                  watchdog ? " of the watchdog" : "");
}

static void check_short(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    if (!is_last_of_moment(pass)) return;
    for (uint32_t at = 0; at < pass->owner_count; at++) {
        const struct promise_owner *owner = &pass->owners[at];
        bool watchdog;
        if (owner->resource != event->resource || !holds_certainly(pass, owner)) continue;
        int64_t least_ms = required_ms(pass, owner, &watchdog);
        if (shorter_at(pass, least_ms) <= servers_of(pass) - majority_of(pass)) continue;
        uint32_t grant = 0;
        for (int mode = 0; mode < CALL_MODES; mode++)
            if (owner->least[mode] > 0) grant = owner->grant[mode];
        break_short(pass, grant, least_ms, watchdog);
        return;
    }
}

/* --- too long --- */

struct key_trace {
    int64_t longest_ms;                        /* that a call may have asked for */
    bool outstanding;                          /* a hold, or a call under way, may stand behind it */
    uint32_t cancelled, renewed, refused, any; /* ASK of the latest call of that kind; NO_CALL: no such call */
};

#define NO_CALL UINT32_MAX

static struct key_trace traces_of(const struct promise_pass *pass, int resource, uint32_t absent) {
    struct key_trace trace = {.cancelled = NO_CALL, .renewed = NO_CALL, .refused = NO_CALL, .any = NO_CALL};
    uint32_t before = NO_CALL; /* cancelled before the key was seen to be absent */
    for (uint32_t at = 0; at < pass->now; at++) {
        const struct promise_call *call = &pass->calls[at];
        if (!leaves_trace(call) || call->ask->asked.resource != resource) continue;
        int64_t live_ms = trace_ms(pass, call);
        if (live_ms > trace.longest_ms) trace.longest_ms = live_ms;
        trace.outstanding |= live_ms > 0 && (is_outstanding(pass, call) || !call->answer);
        bool later = !call->answer || call->answer > absent; /* than the key was seen to be absent */
        trace.any = at;
        if (was_cancelled(pass, call)) before = at;
        if (later && was_cancelled(pass, call)) trace.cancelled = at;
        else if (later && was_refused(pass, call)) trace.refused = at;
        else if (is_renewed(&call->ask->asked) && call->answer) trace.renewed = at;
    }
    /* No watchdog makes a key that was seen to be gone since the latest answer of its owner: a wait has gone on. */
    bool renewed =
        trace.renewed != NO_CALL && pass->calls[trace.renewed].owner->touched_ns > pass->events[absent].at_ns;
    if (!renewed && trace.refused == NO_CALL) trace.cancelled = before;
    return trace;
}

static void break_leftover(struct promise_pass *pass, const struct key_trace *trace) {
    const struct call_event *event = pass->event;
    bool endless = event->remaining_ms == LEASE_WITHOUT_END;
    enum promise promise = endless ? PROMISE_LEASE_ENDLESS : PROMISE_LEASE_LONG;
    uint32_t call = trace->any;
    if (trace->cancelled != NO_CALL) promise = PROMISE_CANCEL, call = trace->cancelled;
    else if (trace->renewed != NO_CALL && !endless) promise = PROMISE_RENEWAL, call = trace->renewed;
    else if (trace->refused != NO_CALL) promise = PROMISE_REFUSAL, call = trace->refused;
    if (call == NO_CALL) return; /* nobody asked: not this library's key */
    promise_break(pass, promise, call, trace->longest_ms, event->remaining_ms,
                  "nobody may hold any more, and the key lives for %lld ms; %s asked last",
                  (long long)event->remaining_ms, caller_name_of(&pass->calls[call].ask->asked).text);
}

static void check_long(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    const struct promise_resource *resource = resource_of(pass, event->resource);
    struct key_trace trace = traces_of(pass, event->resource, resource->absent);
    bool endless = event->remaining_ms == LEASE_WITHOUT_END;
    if (trace.longest_ms == PROMISE_ALWAYS) return;
    if (!endless && event->remaining_ms <= trace.longest_ms + grain_ms(pass)) return;
    if (!trace.outstanding) {
        if (pass->facts->nodes <= 1) break_leftover(pass, &trace);
        return;
    }
    if (endless)
        promise_break(pass, PROMISE_LEASE_ENDLESS, trace.any, trace.longest_ms, event->remaining_ms,
                      "the key has no end; a lease of %lld ms at most was asked for", (long long)trace.longest_ms);
    else
        promise_break(pass, PROMISE_LEASE_LONG, trace.any, trace.longest_ms, event->remaining_ms,
                      "the key lives for %lld ms; a lease of %lld ms at most was asked for",
                      (long long)event->remaining_ms, (long long)trace.longest_ms);
}

static void check_key(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    struct promise_resource *resource = resource_of(pass, event->resource);
    if (pass->facts->lease_key && !pass->data) {
        check_short(pass);
        if (event->remaining_ms != LEASE_NO_KEY && !pass->clock) check_long(pass);
    }
    if (event->remaining_ms != LEASE_NO_KEY) return;
    resource->absent_ns = event->at_ns;
    resource->absent = pass->now;
}

const struct promise_rule PROMISE_RULE_LEASE = {.on = {[EVENT_LEASE] = check_key}};
