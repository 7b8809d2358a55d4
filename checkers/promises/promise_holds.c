#include "checkers/promises/promise_rule.h"

bool may_hold(const struct promise_owner *owner) {
    for (int mode = 0; mode < CALL_MODES; mode++)
        if (owner->most[mode] > 0) return true;
    return false;
}

/* Did the client lose a message while it kept another hold? One watchdog may keep both, and wait for that answer. */
static bool watchdog_may_wait(const struct promise_pass *pass, const struct promise_owner *owner) {
    for (uint32_t each = 0; each < pass->owner_count; each++) {
        const struct promise_owner *other = &pass->owners[each];
        if (other == owner || other->client != owner->client || !other->watched || !may_hold(other)) continue;
        for (uint32_t at = 0; at < pass->disturbance_count; at++) {
            const struct promise_disturbance *disturbance = &pass->disturbances[at];
            bool since = disturbance->event >= &pass->events[other->began];
            if (since && is_hard(disturbance->event) && disturbs_client(disturbance, owner->client)) return true;
        }
    }
    return false;
}

/* May the owner have been silent for so long that its hold has ended, as the library documents it? */
static bool was_silent(const struct promise_pass *pass, const struct promise_owner *owner) {
    int64_t silence_ms = pass->facts->silence_ms;
    return silence_ms > 0 && ms_of(disturbed_ns(pass, owner->client, owner->since_ns, PROMISE_ALWAYS)) >= silence_ms;
}

/* Does the hold that the owner was granted last until now? */
static bool lasts(const struct promise_pass *pass, const struct promise_owner *owner) {
    if (pass->server_clock || pass->data) return false;
    if (owner->end_ns != PROMISE_ALWAYS && pass->now_ns >= owner->end_ns) return false;
    if (was_silent(pass, owner)) return false;
    if (!owner->renewed) return true;
    if (watchdog_may_wait(pass, owner)) return false;
    int64_t lost_ns = disturbed_ns(pass, owner->client, owner->since_ns, PROMISE_ALWAYS);
    return ms_of(lost_ns) <= watchdog_spare_ms(pass);
}

const char *uncertainty_text(const struct promise_pass *pass, const struct promise_owner *owner, enum call_mode mode) {
    if (pass->server_clock) return "the clock of a server was set";
    if (pass->data) return "a server may have lost data";
    if (owner->least[mode] == 0) return owner->doubt ? owner->doubt : PROMISE_MAY_HAVE_ENDED;
    if (owner->end_ns != PROMISE_ALWAYS && pass->now_ns >= owner->end_ns) return "its lease was over";
    if (was_silent(pass, owner)) return "it was silent for as long as the library documents that a hold lasts then";
    if (watchdog_may_wait(pass, owner)) return "its watchdog may have waited for a lost message";
    return "its lease may have been over: it, or a server, was disturbed for too long to renew it";
}

bool holds_in_mode(const struct promise_pass *pass, const struct promise_owner *owner, enum call_mode mode) {
    return owner->least[mode] > 0 && lasts(pass, owner);
}

bool holds_certainly(const struct promise_pass *pass, const struct promise_owner *owner) {
    for (int mode = 0; mode < CALL_MODES; mode++)
        if (owner->least[mode] > 0) return lasts(pass, owner);
    return false;
}

static void note_token(struct promise_pass *pass, const struct promise_call *call) {
    struct promise_resource *resource = call->resource;
    int64_t token = pass->event->token;
    if (call->ask->asked.mode == MODE_READ || call->ask->asked.mode == MODE_PERMIT || token <= resource->token) return;
    resource->token = token;
    resource->token_event = pass->now;
}

void hold_maybe(struct promise_pass *pass, const struct promise_call *call, int grants) {
    call->owner->most[call->ask->asked.mode] += grants;
    call->owner->answered = pass->now;
    call->owner->superseded = 0;
}

/* A server grants a lock that excludes others only when nobody has it: what others were granted before this was asked
 * for is over, whether they know it or not. An owner that may have held already may have entered without a server. */
static void supersede_others(struct promise_pass *pass, const struct promise_call *call) {
    bool of_one_key = pass->facts->nodes <= 1 && !pass->facts->parts;
    if (!of_one_key || !call->nothing || !excludes_readers(call->ask->asked.mode)) return;
    for (struct promise_owner *each = pass->owners; each < pass->owners + pass->owner_count; each++) {
        bool earlier = may_hold(each) && &pass->events[each->answered] < call->ask;
        if (each == call->owner || each->resource != call->owner->resource || !earlier) continue;
        if (!holds_certainly(pass, each)) each->superseded = pass->now; /* else one of the two grants is wrong */
    }
}

/* From when on disturbances may end the hold. A watchdog that was left alone for as long as it may take has renewed the
 * lease, or a client that waited with it has learned that it is over, and must not be granted the lock with it. */
static int64_t certain_since_ns(const struct promise_pass *pass, const struct promise_call *call) {
    const struct promise_client *client = call->owner->client;
    int64_t asked_ns = call->ask->at_ns;
    int64_t from_ns = pass->now_ns - after_ms(0, pass->facts->default_lease_ms - watchdog_spare_ms(pass));
    bool of_one_key = pass->facts->nodes <= 1 && !pass->facts->parts;
    if (!is_renewed(&call->ask->asked) || !of_one_key || from_ns < asked_ns) return asked_ns;
    bool recovers = disturbed_ns(pass, client, asked_ns, PROMISE_ALWAYS) != PROMISE_ALWAYS;
    return recovers && disturbed_ns(pass, client, from_ns, PROMISE_ALWAYS) == 0 ? from_ns : asked_ns;
}

/* Why the grant is no certain hold; NULL: it is one. `older`: the owner may have held before. */
static const char *why_doubtful(const struct promise_pass *pass, const struct promise_call *call, bool older) {
    const struct promise_owner *owner = call->owner;
    if (pass->servers_down > 0 && call->ask < &pass->events[pass->down]) return PROMISE_SERVER_DOWN;
    if (owner->client->late_release_ns >= call->ask->at_ns || has_ended(owner->client)) return PROMISE_MAY_HAVE_ENDED;
    if (call->releasing || call->releases != owner->releases) return "a release at the same time may have ended it";
    return older && owner->watched ? "an older watchdog may shorten its lease, or be stuck" : NULL;
}

/* A library that sends its request again may have been granted the lock by both, if the first one comes late. If only
 * the reply was lost, the server has executed the first one by then: a right lock knows its owner, and counts once. */
static bool may_count_twice(const struct promise_pass *pass, const struct promise_call *call) {
    return call->disturbed && (call->ask->asked.mode == MODE_PERMIT || !lost_only_replies(pass, call));
}

void hold_grant(struct promise_pass *pass, struct promise_call *call) {
    struct promise_owner *owner = call->owner;
    enum call_mode mode = call->ask->asked.mode;
    /* Both before this grant counts in `most`. */
    bool again = holds_certainly(pass, owner), alone = call->alone && !may_hold(owner);
    hold_maybe(pass, call, may_count_twice(pass, call) ? 2 : 1);
    supersede_others(pass, call);
    owner->grant[mode] = pass->now;
    note_token(pass, call);
    owner->doubt = why_doubtful(pass, call, !again && !alone);
    if (owner->doubt) return;
    bool renewed = is_renewed(&call->ask->asked);
    if (!again) {
        for (int each = 0; each < CALL_MODES; each++) owner->least[each] = 0; /* their lease may be over */
        owner->since_ns = certain_since_ns(pass, call);
        owner->end_ns = end_beside_others(pass, call);
        owner->renewed = renewed;
        owner->mixed = !alone;
    }
    owner->mixed |= renewed != owner->renewed;
    owner->renewed |= renewed;
    owner->least[mode]++;
}
