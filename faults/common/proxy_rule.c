#include "faults/common/proxy_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"

enum { RULE_NAME = 96, RULE_TRIES = 1000 };

void proxy_rule_add_word(struct proxy_rule_words *words, const char *word) {
    if (words->count < PROXY_RULE_WORDS) words->word[words->count++] = word;
}

void proxy_rule_add_option(struct proxy_rule_words *words, const char *name, const struct fault_target *target,
                           const char *option) {
    const char *value = fault_option_text(target, option);
    if (!*value) return;
    proxy_rule_add_word(words, name);
    proxy_rule_add_word(words, value);
}

void proxy_rule_links(const struct fault_target *target, const char *servers, char *links, size_t size) {
    if (target->task >= 0) snprintf(links, size, "%s>%s", target->name, servers);
    else snprintf(links, size, "%s", target->links ? target->links : "*");
}

/* A name that the proxy does not know yet: it keeps those of removed rules, for their counters. */
static bool name_choose(struct fault_target *target, struct fault_report *report) {
    struct admin_reply reply;
    for (int each = 1; each <= RULE_TRIES; each++) {
        snprintf(target->state, RULE_NAME, "%s-%d", target->fault->row->name, each);
        if (!admin_command(target->proxy, &reply, report, "RULE STAT %s", target->state)) break;
        if (reply.error) return true;
    }
    target->state[0] = '\0';
    return false;
}

bool proxy_rule_inject(struct fault_target *target, const char *servers, const char *direction,
                       const struct proxy_rule_words *words, struct fault_report *report) {
    char links[RULE_NAME];
    struct admin_reply reply;
    if (!target->proxy) return fault_fail(report, "the links of this trial do not lead through the proxy");
    proxy_rule_links(target, servers, links, sizeof links);
    if (!name_choose(target, report)) return false;
    const char *all[PROXY_RULE_WORDS + 5] = {"RULE", "ADD", target->state, links, direction};
    memcpy(all + 5, words->word, (size_t)words->count * sizeof *all);
    target->driver->unreliable(target->driver->scheduler);
    bool is_reply = admin_command_words(target->proxy, &reply, report, words->count + 5, all);
    if (is_reply && !reply.error)
        return snprintf(report->text, sizeof report->text, "rule %s on %s", target->state, links) > 0;
    target->state[0] = '\0';
    return is_reply ? fault_fail(report, "%.200s", reply.text) : false;
}

/* The number after the line `counter` of RULE STAT's pairs, -1 without one. */
static long long counter_of(const struct admin_reply *reply, const char *counter) {
    char value[32], seen[64];
    const char *at = reply->text;
    while (sscanf(at, "%63[^\n]", seen) == 1) {
        const char *next = strchr(at, '\n');
        if (!next) return -1;
        if (strcmp(seen, counter) == 0 && sscanf(next + 1, "%31[^\n]", value) == 1) return strtoll(value, NULL, 10);
        at = next + 1;
    }
    return -1;
}

bool proxy_rule_prove(struct fault_target *target, const char *counter, struct fault_report *report) {
    struct admin_reply reply;
    if (!target->state[0]) return fault_fail(report, "there is no rule");
    if (!admin_command_ok(target->proxy, &reply, report, "RULE STAT %s", target->state)) return false;
    long long count = counter_of(&reply, counter);
    snprintf(report->text, sizeof report->text, "rule %.90s: %s %lld", target->state, counter, count);
    return count > 0;
}

bool proxy_rule_heal(struct fault_target *target, struct fault_report *report) {
    if (!target->state[0]) return true;
    return admin_command_ok(target->proxy, NULL, report, "RULE REMOVE %s", target->state);
}
