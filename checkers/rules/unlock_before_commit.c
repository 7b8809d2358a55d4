/* A lock that is given back before the transaction is committed that wrote under it. The next holder reads what was
 * there before. */
#include <stdint.h>

#include "checkers/rules/rule_list.h"

/* A new row may depend on what was read under the lock. */
static bool depends_on_a_read(const struct rule_pass *pass, const struct rule_hold *hold, size_t write) {
    const struct wire_event *of = &pass->record->events[write].wire;
    if (of->relative || of->conditional) return false;
    if (!of->inserts) return true;
    for (size_t at = hold->granted; at < write; at++) {
        const struct rule_event *each = &pass->record->events[at];
        if (each->request == hold->request && each->wire.kind == ACCESS_READ && is_data(&each->wire)) return true;
    }
    return false;
}

/* Whether another lock of the request keeps others out from the grant on until the commit. */
static bool is_held_further(const struct rule_pass *pass, const struct rule_hold *hold, size_t commit) {
    for (size_t each = 0; each < pass->count; each++) {
        const struct rule_hold *other = &pass->holds[each];
        if (other != hold && other->request == hold->request && other->lock != LOCK_ROW &&
            other->granted <= hold->granted && (other->released >= commit))
            return true;
    }
    return false;
}

static void unlock_before_commit_by(struct rule_pass *pass, const struct rule_hold *hold) {
    const struct rule_record *record = pass->record;
    char who[96];
    for (size_t at = hold->granted + 1; at < hold->released; at++) {
        const struct rule_event *write = &record->events[at];
        if (write->request != hold->request || write->wire.kind != ACCESS_WRITE || !is_data(&write->wire)) continue;
        size_t commit = commit_of(pass, at), read = read_before(pass, at);
        if (commit == SIZE_MAX || commit < hold->released || !depends_on_a_read(pass, hold, at) ||
            row_is_locked(pass, hold->request, &write->wire, read == SIZE_MAX ? at : read, at) ||
            is_held_further(pass, hold, commit))
            continue;
        rule_broken(
            pass, RULE_UNLOCK_BEFORE_COMMIT, hold->released, commit,
            "%s released %.120s before it committed the transaction in which it wrote %.100s: who gets the lock "
            "meanwhile reads what was there before",
            request_write_name(pass, hold->request, who), hold->object, write->wire.object);
        return;
    }
}

void look_unlock_before_commit(struct rule_pass *pass) {
    for (size_t each = 0; each < pass->count; each++)
        if (pass->holds[each].by_statement && pass->holds[each].request >= 0 && pass->holds[each].released != SIZE_MAX)
            unlock_before_commit_by(pass, &pass->holds[each]);
}
