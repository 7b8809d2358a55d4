/* A lock that a request still holds when it has been answered, and gives back never. A key that has a lease may be
 * meant to stay, as one that makes a request count once; so it counts only if others of the same name have given it
 * back. */
#include <stdint.h>
#include <string.h>

#include "checkers/rules/rule_list.h"

static bool is_given_back_by_others(const struct rule_pass *pass, const struct rule_hold *hold) {
    for (size_t each = 0; each < pass->count; each++) {
        const struct rule_hold *other = &pass->holds[each];
        if (other->request >= 0 && other->request != hold->request && other->released != SIZE_MAX &&
            other->by_statement && strcmp(other->object, hold->object) == 0)
            return true;
    }
    return false;
}

/* Whether it was granted again since: then its lease had ended. */
static bool is_taken_over(const struct rule_pass *pass, const struct rule_hold *hold) {
    for (size_t each = 0; each < pass->count; each++)
        if (pass->holds[each].granted > hold->granted && strcmp(pass->holds[each].object, hold->object) == 0)
            return true;
    return false;
}

void look_lock_left(struct rule_pass *pass) {
    const struct rule_record *record = pass->record;
    char who[96];
    for (size_t each = 0; each < pass->count && !record->is_struck; each++) {
        const struct rule_hold *hold = &pass->holds[each];
        if (hold->request < 0 || hold->released != SIZE_MAX || ends_with_transaction(hold->lock)) continue;
        const struct rule_request *request = &record->requests[hold->request];
        bool stays = hold->ends_ns == INT64_MAX || is_given_back_by_others(pass, hold);
        if (request->answered_at == SIZE_MAX || request->answered_at < hold->granted || !stays ||
            is_taken_over(pass, hold))
            continue;
        rule_broken(pass, RULE_LOCK_LEFT, hold->granted, hold->granted, "%s was answered, and %.120s is still held%s",
                    request_write_name(pass, hold->request, who), hold->object,
                    hold->ends_ns == INT64_MAX ? ", without an end" : ", until its lease ends");
    }
}
