/* One rule at the proxy: what faults on links do, proved by the rule's own counters. */
#pragma once

#include "faults/common/fault.h"

enum { PROXY_RULE_WORDS = 24 };

/* The action of a rule and its options, put together word by word. Strings stay the caller's. */
struct proxy_rule_words {
    const char *word[PROXY_RULE_WORDS];
    int count;
};

void proxy_rule_add_word(struct proxy_rule_words *words, const char *word);
/* Adds "NAME value" if the fault's option has a value that is not empty. */
void proxy_rule_add_option(struct proxy_rule_words *words, const char *name, const struct fault_target *target,
                           const char *option);

/* Adds a rule for the links of a client to `servers` (a glob: "redis-*", "store"), or for the links that the target
 * names itself when it is no client. `direction`: to-server, to-client or both. From here on replies may stay away. The
 * rule's name, made of the fault's, is kept at the beginning of the target's state. */
bool proxy_rule_inject(struct fault_target *target, const char *servers, const char *direction,
                       const struct proxy_rule_words *words, struct fault_report *report);

/* Whether the rule's counter (fired, held, swallowed) is above 0. */
bool proxy_rule_prove(struct fault_target *target, const char *counter, struct fault_report *report);

/* Removes the rule: what it held goes on. Calling it twice is harmless. */
bool proxy_rule_heal(struct fault_target *target, struct fault_report *report);

/* The pattern of the links that the rule concerns, or would. */
void proxy_rule_links(const struct fault_target *target, const char *servers, char *links, size_t size);
