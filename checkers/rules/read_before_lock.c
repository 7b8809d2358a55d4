/* A value that was read before the lock, and decides what is written under it: another request may have changed it in
 * between. It may also have decided whether something is written at all: n - 1, because one was left before the lock.
 */
#include <stdint.h>

#include "checkers/rules/rule_list.h"

/* Whether one lock of the request is held at both events. */
static bool is_covered(const struct rule_pass *pass, int request, size_t from, size_t to) {
    for (size_t each = 0; each < pass->count; each++) {
        const struct rule_hold *hold = &pass->holds[each];
        if (hold->request == request && hold->lock != LOCK_ROW && hold_lasts(hold, from) && hold_lasts(hold, to))
            return true;
    }
    return false;
}

static void read_before_lock_by(struct rule_pass *pass, const struct rule_hold *hold) {
    const struct rule_record *record = pass->record;
    char who[96];
    for (size_t at = hold->granted + 1; at < record->count && at < hold->released; at++) {
        const struct rule_event *write = &record->events[at];
        if (write->request != hold->request || write->wire.kind != ACCESS_WRITE || !is_data(&write->wire) ||
            write->wire.conditional || write->wire.inserts)
            continue;
        size_t read = read_before(pass, at);
        if (read >= hold->granted || is_covered(pass, hold->request, read, at) ||
            row_is_locked(pass, hold->request, &write->wire, read, at))
            continue;
        rule_broken(pass, RULE_READ_BEFORE_LOCK, read, at,
                    "%s read %.100s before it was granted %.120s, and wrote it under the lock without reading it again",
                    request_write_name(pass, hold->request, who), write->wire.object, hold->object);
        return;
    }
}

void look_read_before_lock(struct rule_pass *pass) {
    for (size_t each = 0; each < pass->count; each++)
        if (pass->holds[each].request >= 0) read_before_lock_by(pass, &pass->holds[each]);
}
