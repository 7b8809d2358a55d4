#include "checkers/rules/rule_updates.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* PostgreSQL refuses a write of what has changed since the snapshot. */
static bool is_refused_when_stale(const struct rule_record *record, size_t read, size_t write) {
    const struct wire_event *one = &record->events[read].wire, *other = &record->events[write].wire;
    return other->in_transaction && one->session == other->session && one->transaction == other->transaction &&
           other->isolation >= ISOLATION_REPEATABLE_READ;
}

struct rule_update_list rule_updates_find(const struct rule_pass *pass) {
    const struct rule_record *record = pass->record;
    struct rule_update_list list = {calloc(record->count + 1, sizeof *list.of), 0};
    if (!list.of) abort();
    for (size_t at = 0; at < record->count; at++) {
        const struct rule_event *write = &record->events[at];
        if (write->wire.kind != ACCESS_WRITE || !is_data(&write->wire) || write->request < 0 ||
            write->wire.whole_table || write->wire.inserts)
            continue;
        size_t read = read_before(pass, at);
        bool rests = read != SIZE_MAX && !is_guarded(&write->wire) && !is_refused_when_stale(record, read, at);
        list.of[list.count++] = (struct rule_update){write->request, rests ? read : at, at, rests};
    }
    return list;
}

bool update_is_held(const struct rule_hold *hold, const struct rule_update *update) {
    return hold->request == update->request && hold_lasts(hold, update->from) && hold_lasts(hold, update->write);
}

static bool have_common_lock(const struct rule_pass *pass, const struct rule_update *one,
                             const struct rule_update *other) {
    for (size_t each = 0; each < pass->count; each++) {
        if (!update_is_held(&pass->holds[each], one)) continue;
        /* A lock of the row itself keeps every other writer out. */
        if (ends_with_transaction(pass->holds[each].lock) &&
            strcmp(pass->holds[each].object, pass->record->events[one->write].wire.object) == 0)
            return true;
        for (size_t second = 0; second < pass->count; second++)
            if (update_is_held(&pass->holds[second], other) &&
                strcmp(pass->holds[each].object, pass->holds[second].object) == 0)
                return true;
    }
    return false;
}

bool updates_collide(const struct rule_pass *pass, const struct rule_update *one, const struct rule_update *other) {
    const struct rule_record *record = pass->record;
    return one->rests_on_read && one->request != other->request &&
           same_object(&record->events[one->write].wire, &record->events[other->write].wire) &&
           !have_common_lock(pass, one, other);
}
