/* What the control port understands. faults/README.md describes it for users. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "faults/proxy/control.h"
#include "faults/proxy/link.h"
#include "faults/proxy/rules.h"

enum { NAME_MAX_BYTES = 200 };

struct words {
    const struct span *at;
    size_t count;
};

#define WORD(span) (int)((span).length < 60 ? (span).length : 60), (span).bytes

/* Names and patterns go into C strings and into the history. */
static bool check_name(struct span word, struct answer_text *out) {
    if (word.length && word.length <= NAME_MAX_BYTES && !memchr(word.bytes, '\0', word.length)) return true;
    say_error(out, "a name or pattern has 1 to %d bytes, none of them zero", NAME_MAX_BYTES);
    return false;
}

static struct link *find_link(const struct proxy *proxy, struct span name) {
    for (struct link *link = proxy->links; link; link = link->next)
        if (strlen(link->name) == name.length && memcmp(link->name, name.bytes, name.length) == 0) return link;
    return NULL;
}

/* Calls a function for the links that match a pattern; returns how many, and the sum of what it returned. */
static size_t each_link(struct proxy *proxy, struct span pattern, size_t (*action)(struct link *), size_t *sum) {
    char text[NAME_MAX_BYTES + 1];
    size_t count = 0;
    *sum = 0;
    memcpy(text, pattern.bytes, pattern.length);
    text[pattern.length] = '\0';
    for (struct link *link = proxy->links; link; link = link->next) {
        if (fnmatch(text, link->name, 0) != 0) continue;
        *sum += action(link);
        count++;
    }
    return count;
}

/* --- LINK --- */

static enum verdict link_add_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    struct address listen, target;
    struct address_error error;
    char name[NAME_MAX_BYTES + 1];
    bool plain = words.count == 4 && rule_word_is(words.at[3], "PLAIN");
    bool stepped = words.count == 4 && rule_word_is(words.at[3], "STEPPED");
    if (words.count == 4 && !plain && !stepped) {
        say_error(out, "'%.*s' is no option of LINK ADD: there are PLAIN and STEPPED", WORD(words.at[3]));
        return COMMAND_DONE;
    }
    if (!check_name(words.at[0], out)) return COMMAND_DONE;
    if (find_link(proxy, words.at[0])) {
        say_error(out, "there is a link '%.*s' already: LINK REMOVE it first, or LINK TARGET it", WORD(words.at[0]));
        return COMMAND_DONE;
    }
    memcpy(name, words.at[0].bytes, words.at[0].length);
    name[words.at[0].length] = '\0';
    struct link *link = NULL;
    if (address_parse(words.at[1], &listen, &error) && address_parse(words.at[2], &target, &error))
        link = link_add(proxy, name, &listen, &target, plain, stepped, &error);
    if (link) say_text(out, link->listen.text);
    else say_error(out, "%s", error.text);
    return COMMAND_DONE;
}

static enum verdict link_target_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    struct address target;
    struct address_error error;
    size_t closed;
    if (!check_name(words.at[0], out)) return COMMAND_DONE;
    if (!address_parse(words.at[1], &target, &error)) {
        say_error(out, "%s", error.text);
        return COMMAND_DONE;
    }
    char pattern[NAME_MAX_BYTES + 1];
    memcpy(pattern, words.at[0].bytes, words.at[0].length);
    pattern[words.at[0].length] = '\0';
    for (struct link *link = proxy->links; link; link = link->next)
        if (fnmatch(pattern, link->name, 0) == 0) link->target = target;
    say(out, ":%zu\r\n", each_link(proxy, words.at[0], link_close_connections, &closed));
    return COMMAND_DONE;
}

static enum verdict link_close_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    size_t closed;
    if (!check_name(words.at[0], out)) return COMMAND_DONE;
    each_link(proxy, words.at[0], link_close_connections, &closed);
    say(out, ":%zu\r\n", closed);
    return COMMAND_DONE;
}

static enum verdict link_remove_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    struct link *link = find_link(proxy, words.at[0]);
    if (link) link_remove(link);
    say(out, ":%d\r\n", link != NULL);
    return COMMAND_DONE;
}

static void say_number(struct answer_text *out, const char *name, uint64_t number) {
    say_text(out, name);
    say(out, ":%llu\r\n", (unsigned long long)number);
}

static enum verdict link_list_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    size_t count = 0;
    (void)words;
    for (struct link *link = proxy->links; link; link = link->next) count++;
    say(out, "*%zu\r\n", count);
    for (struct link *link = proxy->links; link; link = link->next) {
        say(out, "*18\r\n");
        say_text(out, "name"), say_text(out, link->name);
        say_text(out, "listen"), say_text(out, link->listen.text);
        say_text(out, "target"), say_text(out, link->target.text);
        say_number(out, "connections", link->connection_count);
        say_number(out, "requests", link->requests);
        say_number(out, "replies", link->replies);
        say_number(out, "pushes", link->pushes);
        say_number(out, "bytes-to-server", link->bytes[TO_SERVER]);
        say_number(out, "bytes-to-client", link->bytes[TO_CLIENT]);
    }
    return COMMAND_DONE;
}

/* --- RULE --- */

static enum verdict rule_add_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    struct rule_error error;
    if (!check_name(words.at[0], out) || !check_name(words.at[1], out)) return COMMAND_DONE;
    struct rule *before = rules_find(proxy, words.at[0]);
    if (before && before->active) {
        say_error(out, "there is a rule '%.*s' already: RULE REMOVE it first", WORD(words.at[0]));
        return COMMAND_DONE;
    }
    struct rule *rule = rule_parse(words.at, words.count, &error);
    if (rule) rules_add(proxy, rule), say(out, "+OK\r\n");
    else say_error(out, "%s", error.text);
    return COMMAND_DONE;
}

static enum verdict rule_remove_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    struct rule *rule = rules_find(proxy, words.at[0]);
    bool active = rule && rule->active;
    if (active) rules_remove(proxy, rule);
    say(out, ":%d\r\n", active);
    return COMMAND_DONE;
}

static void say_rule(struct answer_text *out, const struct rule *rule) {
    say(out, "*14\r\n");
    say_text(out, "name"), say_text(out, rule->name);
    say_number(out, "fired", rule->fired);
    say_number(out, "matched", rule->matched);
    say_number(out, "held", rule->held);
    say_number(out, "released", rule->released);
    say_number(out, "swallowed", rule->swallowed_bytes);
    say_number(out, "active", rule->active);
}

static enum verdict rule_list_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    size_t count = 0;
    (void)words;
    for (const struct rule *rule = proxy->rules; rule; rule = rule->next) count++;
    say(out, "*%zu\r\n", count);
    for (const struct rule *rule = proxy->rules; rule; rule = rule->next) say_rule(out, rule);
    return COMMAND_DONE;
}

static struct rule *known_rule(const struct proxy *proxy, struct span name, struct answer_text *out) {
    struct rule *rule = rules_find(proxy, name);
    if (!rule) say_error(out, "there is no rule '%.*s': RULE LIST shows those that there are", WORD(name));
    return rule;
}

static enum verdict rule_stat_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    const struct rule *rule = known_rule(proxy, words.at[0], out);
    if (rule) say_rule(out, rule);
    return COMMAND_DONE;
}

static enum verdict rule_release_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    int64_t most = INT64_MAX;
    if (words.count == 2 && !rule_number(words.at[1], 1, &most)) {
        say_error(out, "'%.*s' is no number of messages: RULE RELEASE name [n]", WORD(words.at[1]));
        return COMMAND_DONE;
    }
    struct rule *rule = known_rule(proxy, words.at[0], out);
    if (!rule) return COMMAND_DONE;
    if (rule->action != RULE_HOLD) say_error(out, "rule '%.*s' holds nothing: it is no hold", WORD(words.at[0]));
    else say(out, ":%zu\r\n", rules_release(proxy, rule, (size_t)most));
    return COMMAND_DONE;
}

/* --- the rest --- */

static enum verdict settle_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    (void)proxy;
    if (words.count == 0) return COMMAND_SETTLE;
    if (rule_word_is(words.at[0], "TARGETS")) return COMMAND_TARGETS;
    say_error(out, "'%.*s' is no option of SETTLE: there is TARGETS", WORD(words.at[0]));
    return COMMAND_DONE;
}

static enum verdict stats_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    size_t links = 0, rules = 0;
    (void)words;
    for (const struct link *link = proxy->links; link; link = link->next) links++;
    for (const struct rule *rule = proxy->rules; rule; rule = rule->next) rules += rule->active;
    say(out, "*10\r\n");
    say_number(out, "connections", proxy->connections);
    say_number(out, "links", links);
    say_number(out, "rules", rules);
    say_number(out, "memory", proxy->memory_bytes);
    say_number(out, "opaque", proxy->opaque);
    return COMMAND_DONE;
}

static enum verdict ping_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    (void)proxy;
    (void)words;
    say(out, "+PONG\r\n");
    return COMMAND_DONE;
}

static enum verdict quit_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    (void)proxy;
    (void)words;
    say(out, "+OK\r\n");
    return COMMAND_QUIT;
}

static enum verdict shutdown_command(struct proxy *proxy, struct words words, struct answer_text *out) {
    quit_command(proxy, words, out);
    return COMMAND_SHUTDOWN;
}

static const struct command {
    const char *word, *second; /* second: NULL for a command of one word */
    size_t least, most;        /* words that follow */
    enum verdict (*serve)(struct proxy *, struct words, struct answer_text *);
    const char *usage;
} COMMANDS[] = {
    {"LINK", "ADD", 3, 4, link_add_command, "LINK ADD name listen target [PLAIN]"},
    {"LINK", "CLOSE", 1, 1, link_close_command, "LINK CLOSE pattern"},
    {"LINK", "LIST", 0, 0, link_list_command, "LINK LIST"},
    {"LINK", "REMOVE", 1, 1, link_remove_command, "LINK REMOVE name"},
    {"LINK", "TARGET", 2, 2, link_target_command, "LINK TARGET pattern target"},
    {"PING", NULL, 0, 0, ping_command, "PING"},
    {"QUIT", NULL, 0, 0, quit_command, "QUIT"},
    {"RULE", "ADD", 4, SIZE_MAX, rule_add_command, "RULE ADD name pattern to-server|to-client|both action [options]"},
    {"RULE", "LIST", 0, 0, rule_list_command, "RULE LIST"},
    {"RULE", "RELEASE", 1, 2, rule_release_command, "RULE RELEASE name [n]"},
    {"RULE", "REMOVE", 1, 1, rule_remove_command, "RULE REMOVE name"},
    {"RULE", "STAT", 1, 1, rule_stat_command, "RULE STAT name"},
    {"SETTLE", NULL, 0, 1, settle_command, "SETTLE [TARGETS]"},
    {"SHUTDOWN", NULL, 0, 0, shutdown_command, "SHUTDOWN"},
    {"STATS", NULL, 0, 0, stats_command, "STATS"},
};

enum verdict command_serve(struct proxy *proxy, const struct span *words, size_t count, struct answer_text *out) {
    for (size_t each = 0; each < sizeof COMMANDS / sizeof COMMANDS[0]; each++) {
        const struct command *command = &COMMANDS[each];
        size_t used = command->second ? 2 : 1;
        if (!rule_word_is(words[0], command->word)) continue;
        if (command->second && (count < 2 || !rule_word_is(words[1], command->second))) continue;
        if (count - used >= command->least && count - used <= command->most)
            return command->serve(proxy, (struct words){words + used, count - used}, out);
        say_error(out, "usage: %s", command->usage);
        return COMMAND_DONE;
    }
    say_error(out,
              "unknown command '%.*s': there are LINK ADD|TARGET|CLOSE|REMOVE|LIST, RULE ADD|REMOVE|RELEASE|LIST|STAT, "
              "SETTLE, STATS, PING, QUIT and SHUTDOWN",
              WORD(words[0]));
    return COMMAND_DONE;
}
