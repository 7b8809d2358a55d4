#include "checkers/engine/policy.h"

#include <stdio.h>
#include <string.h>

const char *const RELEASE_POLICY[] = {"released", "not-happened", "unknown", NULL};
const char *const ACQUIRE_POLICY[] = {"not-happened", "unknown", NULL};

/* The bits of a reading: 0, failed releases have not happened; 1, acquires of unknown outcome have. */
static bool policy_allows(struct policy policy, int reading) {
    bool failed = reading & 1, happen = reading & 2;
    if (policy.release == RELEASE_RELEASED && failed) return false;
    if (policy.release == RELEASE_NOT_HAPPENED && !failed) return false;
    return policy.acquire == ACQUIRE_UNKNOWN || !happen;
}

bool readings_judge(struct readings *readings, struct history_reader *reader, struct policy policy) {
    bool first = true;
    for (int reading = 0; reading < READINGS; reading++) {
        if (!policy_allows(policy, reading)) continue;
        struct judgement other, *judgement = first ? &readings->first : &other;
        const struct check_reading as = {.releases_failed = reading & 1, .acquires_happen = reading & 2};
        bool whole = judge(judgement, reader, as);
        for (int each = 0; each < judgement->checkers; each++)
            readings->verdict[reading][each] = judgement->at_work[each].verdict;
        if (!first) judge_close(judgement);
        first = false;
        if (!whole) return false;
    }
    return true;
}

void policy_verdict(const struct readings *readings, struct policy policy, int checker, struct verdict *verdict) {
    bool first = true, same = true, partial = false;
    for (int reading = 0; reading < READINGS; reading++) {
        if (!policy_allows(policy, reading)) continue;
        const struct verdict *other = &readings->verdict[reading][checker];
        same &= first || other->status == verdict->status;
        partial |= other->partial && other->status != VERDICT_VIOLATED;
        if (first || (same && other->count < verdict->count)) *verdict = *other;
        first = false;
    }
    if (same && !(partial && policy.release == RELEASE_UNKNOWN)) return;
    bool applies = verdict->applies;
    *verdict = (struct verdict){.applies = applies};
    snprintf(verdict->reason, sizeof verdict->reason,
             "it depends on whether operations whose outcome is not known took effect");
}
