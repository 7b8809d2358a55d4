/* Notices that a hold is lost, which the library gives by itself (redis-semaphore #205, HandleLostToken).
 *
 * Missing or late: an owner was granted a lock that the watchdog keeps and has not asked to give it back, the key was
 * seen to be gone or another owner was granted the lock exclusively, and no notice came by then: the next renewal, half
 * a period late, or a lease, whichever the library documents; later by what the client was paused or late; by a lease
 * more if the client or a server was disturbed harder before. Not required if it was so afterwards, or if the client
 * has ended.
 *
 * False: the owner certainly holds, with a lease that was certainly kept up while it waited, or certainly holds
 * nothing. A notice may come beside the answer to the release. After it nothing is certain of the hold. Decision 0145.
 */
#include "checkers/promises/promise_rule.h"

/* When a notice has to be there; PROMISE_ALWAYS: not at all. */
static int64_t notice_due_ns(const struct promise_pass *pass, const struct promise_owner *owner) {
    int64_t lease_ms = pass->facts->default_lease_ms;
    int64_t from_ns = pass->events[owner->began].at_ns;
    int64_t within_ms = lease_ms + grain_ms(pass);
    if (pass->facts->loss_notice == LOSS_BY_RENEWAL) within_ms = lease_ms - watchdog_spare_ms(pass);
    bool hard = disturbed_ns(pass, owner->client, from_ns, owner->lost_ns) == PROMISE_ALWAYS;
    if (hard || owner->client->closed_connection) within_ms += lease_ms;
    for (uint32_t at = 0; at < pass->disturbance_count; at++) {
        const struct promise_disturbance *each = &pass->disturbances[at];
        bool after = each->event > &pass->events[owner->lost] && disturbs_client(each, owner->client);
        if (after && (is_hard(each->event) || each->until_ns == PROMISE_ALWAYS)) return PROMISE_ALWAYS;
    }
    int64_t late_ns = hard ? 0 : disturbed_ns(pass, owner->client, owner->lost_ns, PROMISE_ALWAYS);
    return late_ns == PROMISE_ALWAYS ? late_ns : after_ms(owner->lost_ns + late_ns, within_ms);
}

static void check_due(struct promise_pass *pass, struct promise_owner *owner) {
    if (owner->lost == 0 || owner->told || has_ended(owner->client)) return;
    int64_t at_ns = notice_due_ns(pass, owner);
    if (pass->now_ns <= at_ns) return;
    owner->told = true;
    const struct call_event *grant = &pass->events[owner->answered];
    promise_break(pass, PROMISE_LOSS, owner->lost, ms_of(at_ns - owner->lost_ns), ms_of(pass->now_ns - owner->lost_ns),
                  "%s had lost the lock for %lld ms, and no notice had come",
                  caller_name_of(&pass->events[grant->call].asked).text,
                  (long long)ms_of(pass->now_ns - owner->lost_ns));
}

static void check_all_due(struct promise_pass *pass) {
    if (pass->facts->loss_notice == LOSS_NOT_TOLD) return;
    for (uint32_t at = 0; at < pass->owner_count; at++) check_due(pass, &pass->owners[at]);
}

static void note_lost(struct promise_pass *pass, struct promise_owner *owner, uint32_t shown) {
    const struct call_event *grant = &pass->events[owner->answered];
    bool granted = may_hold(owner) && grant->outcome == OUTCOME_OK && is_renewed(&pass->events[grant->call].asked);
    if (!granted || owner->mixed || owner->releasing > 0 || owner->lost) return;
    owner->lost = shown;
    owner->lost_ns = pass->now_ns;
}

static void check_lease(struct promise_pass *pass) {
    check_all_due(pass);
    if (pass->event->remaining_ms != LEASE_NO_KEY || !pass->facts->lease_key || pass->facts->nodes > 1) return;
    for (uint32_t at = 0; at < pass->owner_count; at++)
        if (pass->owners[at].resource == pass->event->resource) note_lost(pass, &pass->owners[at], pass->now);
}

static void note_grant(struct promise_pass *pass) {
    check_all_due(pass);
    struct promise_call *call = granted_call(pass);
    if (!call) return;
    call->owner->lost = 0;
    call->owner->told = false;
    for (uint32_t at = 0; at < pass->owner_count; at++)
        if (pass->owners[at].superseded == pass->now) note_lost(pass, &pass->owners[at], pass->now);
}

/* Who gives a lock back needs no notice any more. */
static void check_release(struct promise_pass *pass) {
    check_all_due(pass);
    const struct promise_call *call = &pass->calls[pass->now];
    if (call->ask->asked.verb == CALL_RELEASE) call->owner->told = true;
}

/* A renewed lease that was disturbed while the acquire was under way, or in the lease before it, may have been over
 * when the lock was granted: that it was granted is another promise's, and the notice is true. */
static bool may_be_over(const struct promise_pass *pass, const struct promise_owner *owner) {
    const struct call_event *ask = pass->calls[pass->events[owner->answered].call].ask;
    int64_t session_ns = ask->at_ns - after_ms(0, pass->facts->default_lease_ms);
    int64_t late_ns = disturbed_ns(pass, owner->client, session_ns, PROMISE_ALWAYS);
    return owner->renewed && ms_of(late_ns) > watchdog_spare_ms(pass);
}

static void check_notice(struct promise_pass *pass) {
    const struct call *asked = &pass->event->asked;
    struct promise_owner *owner = owner_of(pass, asked);
    bool nothing = !may_hold(owner) && owner->pending == 0 && owner->touched_ns < pass->now_ns;
    check_due(pass, owner);
    if (nothing || (holds_certainly(pass, owner) && !may_be_over(pass, owner)))
        promise_break(pass, PROMISE_LOSS, nothing ? pass->now : owner->answered, 0, 0,
                      "a notice that %s has lost the lock, which %s", caller_name_of(asked).text,
                      nothing ? "it does not hold" : "it certainly holds");
    owner->told = true;
    doubt_holds(owner, "the library told that it is lost");
}

const struct promise_rule PROMISE_RULE_LOSS = {.on = {[EVENT_ASK] = check_release,
                                                      [EVENT_ANSWER] = note_grant,
                                                      [EVENT_LEASE] = check_lease,
                                                      [EVENT_IDLE] = check_all_due,
                                                      [EVENT_END] = check_all_due,
                                                      [EVENT_NOTICE] = check_notice}};
