/* What all faults on links share: one rule at the proxy, proved by its own counters. */
#ifndef LOCKSTORM_FAULTS_RULE_FAULT_H
#define LOCKSTORM_FAULTS_RULE_FAULT_H

#include "faults/fault.h"

enum { RULE_WORDS = 24 };

/* The words of one control command, put together piece by piece. Strings stay the caller's. */
struct rule_words {
    const char *word[RULE_WORDS];
    int count;
};

void rule_word(struct rule_words *words, const char *word);
/* Adds "NAME value" if the fault's option has a value that is not empty. */
void rule_option(struct rule_words *words, const char *word, const struct fault *fault,
                 const struct fault_target *target, const char *option);

/* Adds a rule for the links of a client to the servers `far` (a glob: "redis-*", "store"), or for those that the
 * target names itself when it is no client. `direction`: to-server, to-client or both; `words`: action and match. From
 * here on replies may stay away. The rule's name goes into the target's state. */
bool rule_inject(const struct fault *fault, struct fault_target *target, const char *far, const char *direction,
                 const struct rule_words *words, struct fault_report *report);

/* Its counter `what` (fired, held, swallowed) is above 0. */
bool rule_prove(struct fault_target *target, const char *what, struct fault_report *report);

/* Removes it: what it held goes on. Twice is harmless. */
bool rule_heal(struct fault_target *target, struct fault_report *report);

#endif
