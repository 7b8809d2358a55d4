#include "checkers/rules/application_rules.h"

#include "checkers/rules/rule_list.h"

static const struct {
    const char *name;
    rule_look *look;
} RULES[APPLICATION_RULES] = {
    [RULE_UNLOCK_BEFORE_COMMIT] = {"unlock-before-commit", look_unlock_before_commit},
    [RULE_SNAPSHOT_BEFORE_LOCK] = {"snapshot-before-lock", look_snapshot_before_lock},
    [RULE_READ_BEFORE_LOCK] = {"read-before-lock", look_read_before_lock},
    [RULE_DONE_TWICE] = {"done-twice", look_done_twice},
    [RULE_UNPROTECTED_WRITE] = {"unprotected-write", look_unprotected_write},
    [RULE_ROW_LOCK_OUTSIDE_TRANSACTION] = {"row-lock-outside-transaction", look_row_lock_outside_transaction},
    [RULE_BEYOND_THE_LEASE] = {"beyond-the-lease", look_beyond_the_lease},
    [RULE_REFUSED_AND_GOES_ON] = {"refused-and-goes-on", look_refused_and_goes_on},
    [RULE_RELEASED_BY_A_STRANGER] = {"released-by-a-stranger", look_released_by_a_stranger},
    [RULE_LOCK_LEFT] = {"lock-left", look_lock_left},
    [RULE_LOCK_ORDER] = {"lock-order", look_lock_order},
};

const char *application_rule_name(int rule) {
    return RULES[rule].name;
}

void application_rules_judge(const struct rule_record *record, struct rule_findings *findings) {
    struct rule_pass pass = {.record = record, .findings = findings};
    findings->count = 0;
    rule_holds_find(&pass);
    for (int rule = 0; rule < APPLICATION_RULES; rule++) RULES[rule].look(&pass);
    rule_holds_free(&pass);
}
