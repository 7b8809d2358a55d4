/* The end of a watchdog (renewal): every hold of a resource was asked to be given back, or another owner was granted it
 * since; no call about it is under way that may have a hold; the answer to a release was not ok, so that somebody may
 * still hold; and since the last call about the resource was asked or answered its key was renewed more often than by
 * one command that was under way, and one for each fault: a library may ask again after it. Whose watchdog does so is
 * not known.
 *
 * Judged with one server, while no client is disturbed or has ended; not after a clock was set or a server may have
 * lost data. */
#include "checkers/promises/promise_rule.h"

enum { RENEWALS_UNDER_WAY = 1 };

static bool waits_with_nothing(const struct promise_pass *pass, const struct promise_call *call) {
    return call->ask->asked.verb == CALL_ACQUIRE && waits_for_all(pass, call) &&
           call->owner->client->late_command_ns < call->ask->at_ns;
}

/* Has the owner asked to give back all that it may have been granted, or has another one been granted it since? */
static bool gives_all_back(const struct promise_pass *pass, const struct promise_owner *owner) {
    int granted = 0, given_back = 0;
    for (const struct promise_call *call = &pass->calls[owner->began]; call < pass->calls + pass->now; call++) {
        if (!call->ask || call->owner != owner) continue;
        if (!call->answer && !waits_with_nothing(pass, call)) return false;
        if (!call->answer) continue;
        granted += call->ask->asked.verb == CALL_ACQUIRE && pass->events[call->answer].outcome != OUTCOME_REFUSED;
        bool gives_back = call->ask->asked.verb == CALL_RELEASE && !call->ask->asked.again && !call->alone;
        given_back += gives_back;
    }
    return given_back >= granted || owner->superseded;
}

/* The owner whose watchdog must have ended; NULL: another one's may still run, or no watchdog ever ran. */
static const struct promise_owner *former_owner(const struct promise_pass *pass, int resource) {
    const struct promise_owner *former = NULL;
    for (const struct promise_owner *owner = pass->owners; owner < pass->owners + pass->owner_count; owner++) {
        if (owner->resource != resource) continue;
        bool may_act = is_disturbed(pass, owner->client) || has_ended(owner->client);
        if (may_act || !gives_all_back(pass, owner)) return NULL;
        if (owner->watched && may_hold(owner) && !owner->superseded) former = owner;
    }
    return former;
}

static uint32_t last_release(const struct promise_pass *pass, const struct promise_owner *owner) {
    uint32_t release = owner->began;
    for (uint32_t at = owner->began; at < pass->now; at++)
        if (pass->calls[at].ask && pass->calls[at].owner == owner && pass->calls[at].ask->asked.verb == CALL_RELEASE)
            release = at;
    return release;
}

static void check_ended_watchdog(struct promise_pass *pass, struct promise_resource *resource) {
    const struct promise_owner *owner = former_owner(pass, resource->resource);
    if (!owner) return;
    uint32_t release = last_release(pass, owner);
    promise_break(pass, PROMISE_RENEWAL, release, 0, resource->renewals,
                  "since the release of %s its key was renewed %d times",
                  caller_name_of(&pass->calls[release].ask->asked).text, resource->renewals);
    resource->renewals = 0;
}

static void note_key_renewal(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    struct promise_resource *resource = resource_of(pass, event->resource);
    if (pass->facts->nodes > 1 || !pass->facts->lease_key || pass->clock || pass->data) return;
    int64_t ends_ns = key_ends_ns(event);
    bool lived = resource->ends_ns != 0 && ends_ns != 0;
    resource->renewals += lived && ends_ns > after_ms(resource->ends_ns, grain_ms(pass));
    resource->ends_ns = ends_ns;
    if (resource->renewals > RENEWALS_UNDER_WAY + (int)pass->disturbance_count) check_ended_watchdog(pass, resource);
}

static void restart_on_ask(struct promise_pass *pass) {
    pass->calls[pass->now].resource->renewals = 0;
}

static void restart_on_answer(struct promise_pass *pass) {
    const struct promise_call *call = answered_call(pass);
    if (call) call->resource->renewals = 0;
}

const struct promise_rule PROMISE_RULE_WATCHDOG = {
    .on = {[EVENT_LEASE] = note_key_renewal, [EVENT_ASK] = restart_on_ask, [EVENT_ANSWER] = restart_on_answer}};
