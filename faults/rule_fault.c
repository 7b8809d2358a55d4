#include "faults/rule_fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"

enum { RULE_NAME = 96, RULE_TRIES = 1000 };

void rule_word(struct rule_words *words, const char *word) {
    if (words->count < RULE_WORDS) words->word[words->count++] = word;
}

void rule_option(struct rule_words *words, const char *word, const struct fault *fault,
                 const struct fault_target *target, const char *option) {
    const char *value = fault_text(fault, target, option);
    if (!*value) return;
    rule_word(words, word);
    rule_word(words, value);
}

/* A name that the proxy does not know yet: it keeps those of removed rules, for their counters. */
static bool name_choose(const struct fault *fault, struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    for (int each = 1; each <= RULE_TRIES; each++) {
        snprintf(target->state, RULE_NAME, "%s-%d", fault->name, each);
        if (!ask(target->proxy, &answer, report, "RULE STAT %s", target->state)) break;
        if (answer.error) return true;
    }
    target->state[0] = '\0';
    return false;
}

bool rule_inject(const struct fault *fault, struct fault_target *target, const char *far, const char *direction,
                 const struct rule_words *words, struct fault_report *report) {
    char links[RULE_NAME];
    struct answer answer;
    if (!target->proxy) return fault_fail(report, "the links of this trial do not lead through the proxy");
    if (target->strand >= 0) snprintf(links, sizeof links, "%s>%s", target->name, far);
    else snprintf(links, sizeof links, "%s", target->links ? target->links : "*");
    if (!name_choose(fault, target, report)) return false;
    const char *all[RULE_WORDS + 5] = {"RULE", "ADD", target->state, links, direction};
    memcpy(all + 5, words->word, (size_t)words->count * sizeof *all);
    if (target->means && target->means->unreliable) target->means->unreliable(target->means->conductor);
    bool answered = ask_words(target->proxy, ASK_LIMIT_MS, &answer, report, words->count + 5, all, NULL);
    if (answered && !answer.error)
        return snprintf(report->text, sizeof report->text, "rule %s on %s", target->state, links) > 0;
    target->state[0] = '\0';
    return answered ? fault_fail(report, "%.200s", answer.text) : false;
}

/* The number after the line `what` of RULE STAT's pairs, -1: there is none. */
static long long counter_of(const struct answer *answer, const char *what) {
    char value[32], seen[64];
    const char *at = answer->text;
    while (sscanf(at, "%63[^\n]", seen) == 1) {
        const char *next = strchr(at, '\n');
        if (!next) return -1;
        if (strcmp(seen, what) == 0 && sscanf(next + 1, "%31[^\n]", value) == 1) return strtoll(value, NULL, 10);
        at = next + 1;
    }
    return -1;
}

bool rule_prove(struct fault_target *target, const char *what, struct fault_report *report) {
    struct answer answer;
    if (!target->state[0]) return fault_fail(report, "there is no rule");
    if (!ask_good(target->proxy, &answer, report, "RULE STAT %s", target->state)) return false;
    long long count = counter_of(&answer, what);
    snprintf(report->text, sizeof report->text, "rule %.90s: %s %lld", target->state, what, count);
    return count > 0;
}

bool rule_heal(struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    if (!target->state[0]) return true;
    return ask_good(target->proxy, &answer, report, "RULE REMOVE %s", target->state);
}
