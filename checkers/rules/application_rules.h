/* Rules about what stands around a lock: what a request does to locks and data in the wrong order, or not at all. They
 * need no configuration, and each can be seen on the wire. docs/application-rules.md defines them, with what excuses.
 *
 * A rule that is broken is a *warning*: it says what can go wrong, and why. What went wrong is a violated check.
 *
 * Sources: Tang and others, "Ad Hoc Transactions in Web Applications" (SIGMOD 2022); Warszawski and Bailis, "ACIDRain"
 * (SIGMOD 2017); Savage and others, "Eraser" (TOCS 1997); issue 23. */
#pragma once

#include "checkers/rules/rule_finding.h"

/* "unlock-before-commit", ... */
const char *application_rule_name(int rule);

/* Judges a whole record. Keeps nothing. */
void application_rules_judge(const struct rule_record *record, struct rule_findings *findings);
