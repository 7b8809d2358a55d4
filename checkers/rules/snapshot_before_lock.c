/* A transaction whose snapshot is older than the lock: under REPEATABLE READ it sees what was there at its first
 * statement, whatever the lock has waited for. PostgreSQL refuses to write a row that has changed since (40001), and
 * SERIALIZABLE transactions altogether; a new row, or another one, is written. */
#include <stdint.h>

#include "checkers/rules/rule_list.h"

static bool is_in(const struct wire_event *event, const struct wire_event *of) {
    return event->service == of->service && event->session == of->session && event->transaction == of->transaction;
}

/* The first statement of the transaction of an event, which takes its snapshot. */
static size_t snapshot_of(const struct rule_record *record, size_t event) {
    for (size_t at = 0; at < event; at++)
        if (is_in(&record->events[at].wire, &record->events[event].wire) &&
            record->events[at].wire.kind != TRANSACTION_BEGUN)
            return at;
    return event;
}

static void snapshot_before_lock_by(struct rule_pass *pass, const struct rule_hold *hold) {
    const struct rule_record *record = pass->record;
    char who[96];
    for (size_t at = hold->granted + 1; at < record->count && at < hold->released; at++) {
        const struct rule_event *write = &record->events[at];
        if (write->request != hold->request || write->wire.kind != ACCESS_WRITE || !is_data(&write->wire) ||
            !write->wire.in_transaction || write->wire.isolation != ISOLATION_REPEATABLE_READ)
            continue;
        size_t snapshot = snapshot_of(record, at);
        if (snapshot > hold->granted || (!write->wire.inserts && read_before(pass, at) != SIZE_MAX)) continue;
        rule_broken(
            pass, RULE_SNAPSHOT_BEFORE_LOCK, hold->granted, snapshot,
            "%s was granted %.120s after its REPEATABLE READ transaction had begun to read: it writes %.100s by "
            "what was there before the lock",
            request_write_name(pass, hold->request, who), hold->object, write->wire.object);
        return;
    }
}

void look_snapshot_before_lock(struct rule_pass *pass) {
    for (size_t each = 0; each < pass->count; each++)
        if (pass->holds[each].request >= 0 && pass->holds[each].lock != LOCK_ROW)
            snapshot_before_lock_by(pass, &pass->holds[each]);
}
