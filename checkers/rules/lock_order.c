/* Two requests that take two locks in different orders: each may wait for the other. A lock that both hold meanwhile
 * keeps them apart. */
#include <string.h>

#include "checkers/rules/rule_list.h"

static bool holds_at(const struct rule_hold *hold, int request, size_t at) {
    return hold->request == request && hold_lasts(hold, at);
}

/* Whether a third lock is held by both requests at these events. */
static bool is_kept_apart(const struct rule_pass *pass, size_t one, size_t other, const char *first,
                          const char *second) {
    const struct rule_event *events = pass->record->events;
    for (size_t each = 0; each < pass->count; each++) {
        const struct rule_hold *hold = &pass->holds[each];
        if (!holds_at(hold, events[one].request, one) || strcmp(hold->object, first) == 0 ||
            strcmp(hold->object, second) == 0)
            continue;
        for (size_t again = 0; again < pass->count; again++)
            if (holds_at(&pass->holds[again], events[other].request, other) &&
                strcmp(pass->holds[again].object, hold->object) == 0)
                return true;
    }
    return false;
}

/* Where another request asks for `held` while it holds `asked`. */
static void other_order_look(struct rule_pass *pass, size_t at, const char *held, const char *asked) {
    const struct rule_record *record = pass->record;
    char who[96], other[96];
    for (size_t back = 0; back < record->count; back++) {
        const struct rule_event *each = &record->events[back];
        if (each->wire.kind != LOCK_ASKED || each->request < 0 || each->request == record->events[at].request ||
            strcmp(each->wire.object, held) != 0)
            continue;
        for (size_t hold = 0; hold < pass->count; hold++) {
            if (!holds_at(&pass->holds[hold], each->request, back) || strcmp(pass->holds[hold].object, asked) != 0 ||
                is_kept_apart(pass, at, back, held, asked))
                continue;
            rule_broken(pass, RULE_LOCK_ORDER, at, back,
                        "%s asked for %.100s while it held %.100s, and %s asked for them in the other order",
                        request_write_name(pass, record->events[at].request, who), asked, held,
                        request_write_name(pass, each->request, other));
            return;
        }
    }
}

void look_lock_order(struct rule_pass *pass) {
    const struct rule_record *record = pass->record;
    for (size_t at = 0; at < record->count; at++) {
        const struct rule_event *ask = &record->events[at];
        if (ask->wire.kind != LOCK_ASKED || ask->request < 0) continue;
        for (size_t each = 0; each < pass->count; each++)
            if (holds_at(&pass->holds[each], ask->request, at) &&
                strcmp(pass->holds[each].object, ask->wire.object) != 0)
                other_order_look(pass, at, pass->holds[each].object, ask->wire.object);
    }
}
