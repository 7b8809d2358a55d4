/* The rules of applications by name, and what breaks them. */
#pragma once

#include "checkers/rules/rule_record.h"

enum application_rule {
    RULE_UNLOCK_BEFORE_COMMIT,
    RULE_SNAPSHOT_BEFORE_LOCK,
    RULE_READ_BEFORE_LOCK,
    RULE_ROW_LOCK_OUTSIDE_TRANSACTION,
    RULE_BEYOND_THE_LEASE,
    RULE_REFUSED_AND_GOES_ON,
    RULE_RELEASED_BY_A_STRANGER,
    RULE_LOCK_ORDER,
    RULE_DONE_TWICE,
    RULE_UNPROTECTED_WRITE, /* what the others leave */
    RULE_LOCK_LEFT,
    APPLICATION_RULES
};

enum { RULE_FINDINGS = 32, RULE_SENTENCE = 512 };

struct rule_finding {
    enum application_rule rule;
    size_t event, other; /* of the record: the one that shows it, and one that it contradicts */
    char sentence[RULE_SENTENCE];
};

/* In the order of the rules, then of the events that show them. Of each rule and pair of request names the first one is
 * there; what has no room is left out. */
struct rule_findings {
    struct rule_finding of[RULE_FINDINGS];
    int count;
};
