/* Rules about what stands around a lock: what a request does to locks and data in the wrong order, or not at all. They
 * need no configuration, and each can be seen on the wire. docs/application-rules.md defines them, with what excuses.
 *
 * A rule that is broken is a *warning*: it says what can go wrong, and why. What went wrong is a violated check.
 *
 * Sources: Tang and others, "Ad Hoc Transactions in Web Applications" (SIGMOD 2022); Warszawski and Bailis, "ACIDRain"
 * (SIGMOD 2017); Savage and others, "Eraser" (TOCS 1997); issue 23. */
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

/* "unlock-before-commit", ... */
const char *application_rule_name(int rule);

/* Judges a whole record. Keeps nothing. */
void application_rules_judge(const struct rule_record *record, struct rule_findings *findings);
