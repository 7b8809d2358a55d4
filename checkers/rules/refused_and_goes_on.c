/* A request that was refused the lock, and writes all the same what others write under it. */
#include <string.h>

#include "checkers/rules/rule_list.h"

static bool is_granted_later(const struct rule_pass *pass, size_t refused) {
    const struct rule_event *of = &pass->record->events[refused];
    for (size_t at = refused + 1; at < pass->record->count; at++) {
        const struct rule_event *each = &pass->record->events[at];
        if (each->request == of->request && each->wire.kind == LOCK_GRANTED && same_object(&each->wire, &of->wire))
            return true;
    }
    return false;
}

/* Whether another request has written this data while it held the lock. */
static bool is_protected_by(const struct rule_pass *pass, size_t write, const char *lock) {
    const struct rule_record *record = pass->record;
    for (size_t each = 0; each < pass->count; each++) {
        const struct rule_hold *hold = &pass->holds[each];
        if (hold->request < 0 || hold->request == record->events[write].request || strcmp(hold->object, lock) != 0)
            continue;
        for (size_t at = hold->granted; at < record->count && at < hold->released; at++)
            if (record->events[at].request == hold->request && record->events[at].wire.kind == ACCESS_WRITE &&
                same_object(&record->events[at].wire, &record->events[write].wire))
                return true;
    }
    return false;
}

void look_refused_and_goes_on(struct rule_pass *pass) {
    const struct rule_record *record = pass->record;
    char who[96];
    for (size_t at = 0; at < record->count; at++) {
        const struct rule_event *refused = &record->events[at];
        bool is_held = refused->wire.refusal == REFUSED_HELD || refused->wire.refusal == REFUSED_TIMEOUT;
        if (refused->wire.kind != LOCK_REFUSED || !is_held || refused->request < 0 || is_granted_later(pass, at))
            continue;
        for (size_t write = at + 1; write < record->count; write++) {
            const struct rule_event *each = &record->events[write];
            if (each->request != refused->request || each->wire.kind != ACCESS_WRITE || !is_data(&each->wire) ||
                is_guarded(&each->wire) || !is_protected_by(pass, write, refused->wire.object))
                continue;
            rule_broken(pass, RULE_REFUSED_AND_GOES_ON, write, at,
                        "%s was refused %.120s, and wrote %.100s all the same, which others write under this lock",
                        request_write_name(pass, refused->request, who), refused->wire.object, each->wire.object);
            break;
        }
    }
}
