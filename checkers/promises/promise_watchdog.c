/* The end of a watchdog (renewal): every hold of a resource was asked to be given back, no call about it is under way,
 * the answer to a release was not ok, so that somebody may still hold; and since the last call about the resource was
 * asked or answered its key was renewed more often than by one command that was under way, and one for each fault: a
 * library may ask again after it.
 *
 * Judged with one server, while no client is struck or has ended; not after a clock was set or a server may have lost
 * data. */
#include "checkers/promises/promise_rule.h"

extern const struct promise_rule PROMISE_RULE_WATCHDOG;

enum { UNDER_WAY = 1 };

/* Whether the owner has asked to give back whatever it may have been granted. */
static bool gives_all_back(const struct promise_course *course, const struct promise_owner *owner) {
    int granted = 0, given_back = 0;
    for (uint32_t at = owner->began; at < course->now; at++) {
        const struct promise_call *call = &course->calls[at];
        if (!call->ask || call->owner != owner) continue;
        if (!call->answer) return false;
        granted += call->ask->asked.verb == CALL_ACQUIRE && course->events[call->answer].outcome != OUTCOME_REFUSED;
        given_back += call->ask->asked.verb == CALL_RELEASE;
    }
    return given_back >= granted;
}

/* The owner whose watchdog has to have ended; NULL if there is no such owner, or another owner's has not. */
static const struct promise_owner *former_owner(const struct promise_course *course, int resource) {
    const struct promise_owner *former = NULL;
    for (uint32_t at = 0; at < course->owner_count; at++) {
        const struct promise_owner *owner = &course->owners[at];
        if (owner->resource != resource) continue;
        bool may_act = is_struck(course, owner->client) || owner->client->gone_ns != PROMISE_ALWAYS;
        if (may_act || !gives_all_back(course, owner)) return NULL;
        if (owner->watched && may_hold(owner)) former = owner;
    }
    return former;
}

static uint32_t last_release(const struct promise_course *course, const struct promise_owner *owner) {
    uint32_t release = owner->began;
    for (uint32_t at = owner->began; at < course->now; at++)
        if (course->calls[at].ask && course->calls[at].owner == owner &&
            course->calls[at].ask->asked.verb == CALL_RELEASE)
            release = at;
    return release;
}

static void goes_on(struct promise_course *course, struct promise_resource *resource) {
    const struct promise_owner *owner = former_owner(course, resource->resource);
    if (!owner) return;
    uint32_t release = last_release(course, owner);
    char one[64];
    promise_break(course, PROMISE_RENEWAL, release, 0, resource->renewals,
                  "since the release of %s the watchdog has renewed the key %d times",
                  caller_text(&course->calls[release].ask->asked, one, sizeof one), resource->renewals);
    resource->renewals = 0;
}

static void seen(struct promise_course *course) {
    const struct call_event *event = &course->events[course->now];
    struct promise_resource *resource = course_resource(course, event->resource);
    if (course->facts->nodes > 1 || !course->facts->lease_key || course->clock || course->data) return;
    int64_t ends_ns = event->remaining_ms > 0 ? after_ms(event->at_ns, event->remaining_ms) : 0;
    bool lived = resource->ends_ns != 0 && ends_ns != 0;
    resource->renewals += lived && ends_ns > after_ms(resource->ends_ns, grain_ms(course));
    resource->ends_ns = ends_ns;
    if (resource->renewals > UNDER_WAY + (int)course->strike_count) goes_on(course, resource);
}

static void called(struct promise_course *course, const struct promise_call *call) {
    if (call && call->ask) course_resource(course, call->ask->asked.resource)->renewals = 0;
}

static void asked(struct promise_course *course) {
    called(course, &course->calls[course->now]);
}

static void promise_watchdog_answered(struct promise_course *course) {
    called(course, course_answered(course));
}

const struct promise_rule PROMISE_RULE_WATCHDOG = {
    .on = {[EVENT_LEASE] = seen, [EVENT_ASK] = asked, [EVENT_ANSWER] = promise_watchdog_answered}};
