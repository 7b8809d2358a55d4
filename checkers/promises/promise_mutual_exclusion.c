/* Mutual exclusion: an acquire was answered ok, and at that moment its owner and another one certainly hold in modes
 * that exclude each other: exclusive and write exclude each other, themselves and read. Or more permits are certainly
 * held than there are. Or an owner holds exclusively twice what it cannot re-enter.
 *
 * A hold is certain from the answer of its acquire to the ask of its release, within its lease, which counts from the
 * ask of the acquire or of the latest renewal that was answered ok, less the rounding; of several leases of one owner
 * the shortest counts. A renewed hold is certain as long as its client and the servers were not disturbed, since that
 * ask, for longer than a renewed lease certainly has left. docs/promises.md names what else ends certainty. The clock
 * of one client ends only what that client holds: no clock but a server's frees what another one holds. */
#include "checkers/promises/promise_rule.h"

static void break_mutual_exclusion(struct promise_pass *pass, const struct promise_call *call, uint32_t other) {
    const struct promise_call *earlier = &pass->calls[pass->events[other].call];
    promise_break(pass, PROMISE_MUTUAL_EXCLUSION, other, 0, ms_of(pass->now_ns - pass->events[other].at_ns),
                  "%s was granted (%s) while %s certainly holds (%s)", caller_name_of(&call->ask->asked).text,
                  mode_text(call->ask->asked.mode), caller_name_of(&earlier->ask->asked).text,
                  mode_text(earlier->ask->asked.mode));
}

/* The other owner's grant that excludes a hold in `mode`; 0: no grant does. */
static uint32_t excluding_grant(const struct promise_pass *pass, const struct promise_owner *owner,
                                enum call_mode mode) {
    for (int each = MODE_EXCLUSIVE; each <= MODE_WRITE; each++)
        if ((excludes_readers(mode) || excludes_readers((enum call_mode)each)) &&
            holds_in_mode(pass, owner, (enum call_mode)each))
            return owner->grant[each];
    return 0;
}

static void check_permits(struct promise_pass *pass, const struct promise_call *call) {
    int held = 0, permits = pass->facts->permits > 1 ? pass->facts->permits : 1;
    uint32_t other = pass->now;
    for (const struct promise_owner *each = pass->owners; each < pass->owners + pass->owner_count; each++) {
        if (each->resource != call->owner->resource || !holds_in_mode(pass, each, MODE_PERMIT)) continue;
        held += pass->facts->reenters ? 1 : each->least[MODE_PERMIT];
        if (each != call->owner) other = each->grant[MODE_PERMIT];
    }
    if (held > permits)
        promise_break(pass, PROMISE_MUTUAL_EXCLUSION, other, permits, held,
                      "%s was granted a permit: %d are certainly held, and there are %d",
                      caller_name_of(&call->ask->asked).text, held, permits);
}

/* Has the owner asked to give back what it was granted before? As a reader of the calls sees it. */
static bool seems_to_hold(const struct promise_pass *pass, const struct promise_owner *owner, enum call_mode mode) {
    int holds = 0;
    for (const struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        if (!call->ask || call->owner != owner || call->ask->asked.mode != mode) continue;
        bool granted = call->answer && pass->events[call->answer].outcome == OUTCOME_OK;
        holds += call->ask->asked.verb == CALL_ACQUIRE && granted;
        holds -= call->ask->asked.verb == CALL_RELEASE && holds > 0;
    }
    return holds > 0;
}

/* Names why two owners that seem to hold need not exclude each other. */
static void excuse_other(struct promise_pass *pass, const struct promise_call *call, struct promise_owner *other) {
    enum call_mode mode = call->ask->asked.mode;
    for (int each = MODE_EXCLUSIVE; each <= MODE_WRITE; each++) {
        enum call_mode held = (enum call_mode)each;
        bool excludes = excludes_readers(mode) || excludes_readers(held);
        if (!excludes || other->excused == other->grant[each] || !seems_to_hold(pass, other, held)) continue;
        bool certain = holds_in_mode(pass, call->owner, mode);
        const struct promise_owner *doubtful = certain ? other : call->owner;
        const struct promise_call *earlier = &pass->calls[pass->events[other->grant[each]].call];
        other->excused = other->grant[each];
        promise_excuse(pass, other->grant[each],
                       "%s was granted while %s had not given back; not required, because client-%d does not certainly "
                       "hold: %s",
                       caller_name_of(&call->ask->asked).text, caller_name_of(&earlier->ask->asked).text,
                       doubtful->client->client + 1, uncertainty_text(pass, doubtful, certain ? held : mode));
    }
}

static void promise_mutual_exclusion_answered(struct promise_pass *pass) {
    const struct promise_call *call = granted_call(pass);
    if (!call) return;
    enum call_mode mode = call->ask->asked.mode;
    bool certain = holds_in_mode(pass, call->owner, mode);
    if (mode == MODE_PERMIT) {
        if (certain) check_permits(pass, call);
        return;
    }
    if (certain && excludes_readers(mode) && !pass->facts->reenters && call->certain &&
        call->doubts == call->owner->doubts && call->owner->least[mode] > 1)
        break_mutual_exclusion(pass, call, pass->now);
    for (struct promise_owner *each = pass->owners; each < pass->owners + pass->owner_count; each++) {
        if (each == call->owner || each->resource != call->owner->resource) continue;
        uint32_t other = certain ? excluding_grant(pass, each, mode) : 0;
        if (other) break_mutual_exclusion(pass, call, other);
        else excuse_other(pass, call, each);
    }
}

const struct promise_rule PROMISE_RULE_MUTUAL_EXCLUSION = {.on = {[EVENT_ANSWER] = promise_mutual_exclusion_answered}};
