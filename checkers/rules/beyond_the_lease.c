/* A write that takes effect when the lease of the lock is over: another request may hold it by then. */
#include <stdint.h>

#include "checkers/rules/rule_list.h"

enum { NS_PER_MS = 1000000 };

static bool is_granted_to_another(const struct rule_pass *pass, const struct rule_hold *hold, size_t until) {
    for (size_t each = 0; each < pass->count; each++) {
        const struct rule_hold *other = &pass->holds[each];
        if (other != hold && other->request != hold->request && other->granted > hold->granted &&
            other->granted < until && pass->record->events[other->granted].wire.answered_ns >= hold->ends_ns &&
            same_object(&pass->record->events[other->granted].wire, &pass->record->events[hold->granted].wire))
            return true;
    }
    return false;
}

static void beyond_the_lease_by(struct rule_pass *pass, const struct rule_hold *hold) {
    const struct rule_record *record = pass->record;
    char who[96];
    for (size_t at = hold->granted + 1; at < record->count && at < hold->released; at++) {
        const struct rule_event *write = &record->events[at];
        if (write->request != hold->request || write->wire.kind != ACCESS_WRITE || !is_data(&write->wire)) continue;
        size_t commit = commit_of(pass, at), effect = commit == SIZE_MAX ? at : commit, read = read_before(pass, at);
        int64_t late_ns = record->events[effect].wire.answered_ns - hold->ends_ns;
        bool another = is_granted_to_another(pass, hold, effect);
        if (late_ns <= 0 || write->wire.relative || write->wire.conditional || (write->wire.inserts && !another) ||
            (write->wire.in_transaction && commit == SIZE_MAX) ||
            row_is_locked(pass, hold->request, &write->wire, read == SIZE_MAX ? at : read, at))
            continue;
        rule_broken(pass, RULE_BEYOND_THE_LEASE, effect, hold->granted,
                    "%s wrote %.100s %lld ms after its lease of %.120s had ended%s",
                    request_write_name(pass, hold->request, who), write->wire.object, (long long)(late_ns / NS_PER_MS),
                    hold->object, another ? ", when another request had been granted it" : "");
        return;
    }
}

void look_beyond_the_lease(struct rule_pass *pass) {
    for (size_t each = 0; each < pass->count; each++)
        if (pass->holds[each].request >= 0 && pass->holds[each].ends_ns != INT64_MAX)
            beyond_the_lease_by(pass, &pass->holds[each]);
}
