/* A lock that is given back by a request that does not hold it: by its name alone, as DEL does. */
#include <stdint.h>

#include "checkers/rules/rule_list.h"

void look_released_by_a_stranger(struct rule_pass *pass) {
    const struct rule_record *record = pass->record;
    char who[96], holder[96];
    for (size_t each = 0; each < pass->count; each++) {
        const struct rule_hold *hold = &pass->holds[each];
        if (hold->released == SIZE_MAX || !hold->by_statement || hold->request < 0) continue;
        const struct rule_event *release = &record->events[hold->released];
        if (release->request < 0 || release->request == hold->request || release->wire.owner[0]) continue;
        rule_broken(pass, RULE_RELEASED_BY_A_STRANGER, hold->released, hold->granted,
                    "%s released %.120s, which %s held", request_write_name(pass, release->request, who), hold->object,
                    request_write_name(pass, hold->request, holder));
    }
}
