/* SELECT ... FOR UPDATE that is a transaction of its own: the row is free again when the statement has ended, and the
 * write that follows is not protected (Tang and others, section 4.1: Spree). */
#include "checkers/rules/rule_list.h"

void look_row_lock_outside_transaction(struct rule_pass *pass) {
    const struct rule_record *record = pass->record;
    char who[96];
    for (size_t at = 0; at < record->count; at++) {
        const struct rule_event *lock = &record->events[at];
        if (lock->wire.kind != LOCK_GRANTED || lock->wire.lock != LOCK_ROW || lock->wire.in_transaction ||
            lock->request < 0)
            continue;
        for (size_t write = at + 1; write < record->count; write++) {
            const struct rule_event *each = &record->events[write];
            if (each->request != lock->request || each->wire.kind != ACCESS_WRITE || !is_data(&each->wire) ||
                !same_object(&each->wire, &lock->wire) || is_guarded(&each->wire))
                continue;
            rule_broken(
                pass, RULE_ROW_LOCK_OUTSIDE_TRANSACTION, at, write,
                "%s locked %.120s outside of a transaction, so the lock ended with its statement, and wrote the "
                "row later",
                request_write_name(pass, lock->request, who), lock->wire.object);
            break;
        }
    }
}
