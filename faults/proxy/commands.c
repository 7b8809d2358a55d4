#include "faults/proxy/commands.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "faults/proxy/link.h"
#include "faults/proxy/rule_set.h"

enum { NAME_MAX_BYTES = 200 };

struct command_arguments {
    const struct span *at;
    size_t count;
};

#define WORD(span) (int)((span).length < 60 ? (span).length : 60), (span).bytes

/* Names and patterns become C strings and texts of the history. */
static bool commands_check_name(struct span word, struct control_reply *reply) {
    if (word.length && word.length <= NAME_MAX_BYTES && !memchr(word.bytes, '\0', word.length)) return true;
    reply_error(reply, "a name or pattern has 1 to %d bytes, none of them zero", NAME_MAX_BYTES);
    return false;
}

static struct proxy_link *find_link(const struct proxy *proxy, struct span name) {
    for (struct proxy_link *link = proxy->links; link; link = link->next)
        if (strlen(link->name) == name.length && memcmp(link->name, name.bytes, name.length) == 0) return link;
    return NULL;
}

/* Calls a function for each link that matches the pattern; returns how many, and in *sum the sum of its results. */
static size_t each_link(struct proxy *proxy, struct span pattern, size_t (*action)(struct proxy_link *), size_t *sum) {
    char text[NAME_MAX_BYTES + 1];
    size_t count = 0;
    *sum = 0;
    memcpy(text, pattern.bytes, pattern.length);
    text[pattern.length] = '\0';
    for (struct proxy_link *link = proxy->links; link; link = link->next) {
        if (fnmatch(text, link->name, 0) != 0) continue;
        *sum += action(link);
        count++;
    }
    return count;
}

/* --- LINK --- */

static bool read_link_option(struct span word, enum link_option *option) {
    static const char *const names[] = {
        [LINK_PLAIN] = "PLAIN",
        [LINK_PATIENT] = "PATIENT",
        [LINK_STEPPED] = "STEPPED",
        [LINK_TIMED] = "TIMED",
    };
    for (size_t each = LINK_PLAIN; each < sizeof names / sizeof *names; each++) {
        if (!rule_word_is(word, names[each])) continue;
        *option = (enum link_option)each;
        return true;
    }
    return false;
}

static enum command_result link_add_command(struct proxy *proxy, struct command_arguments arguments,
                                            struct control_reply *reply) {
    struct address listen, target;
    struct address_error error;
    char name[NAME_MAX_BYTES + 1];
    enum link_option option = LINK_RESP;
    if (arguments.count == 4 && !read_link_option(arguments.at[3], &option)) {
        reply_error(reply, "'%.*s' is no option of LINK ADD: the options are PATIENT, PLAIN, STEPPED and TIMED",
                    WORD(arguments.at[3]));
        return COMMAND_DONE;
    }
    if (!commands_check_name(arguments.at[0], reply)) return COMMAND_DONE;
    if (find_link(proxy, arguments.at[0])) {
        reply_error(reply, "the link '%.*s' exists already: LINK REMOVE it first, or LINK TARGET it",
                    WORD(arguments.at[0]));
        return COMMAND_DONE;
    }
    memcpy(name, arguments.at[0].bytes, arguments.at[0].length);
    name[arguments.at[0].length] = '\0';
    struct proxy_link *link = NULL;
    if (address_parse(arguments.at[1], &listen, &error) && address_parse(arguments.at[2], &target, &error))
        link = link_add(proxy, name, &listen, &target, option, &error);
    if (link) reply_bulk(reply, link->listen.text);
    else reply_error(reply, "%s", error.text);
    return COMMAND_DONE;
}

static enum command_result link_target_command(struct proxy *proxy, struct command_arguments arguments,
                                               struct control_reply *reply) {
    struct address target;
    struct address_error error;
    size_t closed;
    if (!commands_check_name(arguments.at[0], reply)) return COMMAND_DONE;
    if (!address_parse(arguments.at[1], &target, &error)) {
        reply_error(reply, "%s", error.text);
        return COMMAND_DONE;
    }
    char pattern[NAME_MAX_BYTES + 1];
    memcpy(pattern, arguments.at[0].bytes, arguments.at[0].length);
    pattern[arguments.at[0].length] = '\0';
    for (struct proxy_link *link = proxy->links; link; link = link->next)
        if (fnmatch(pattern, link->name, 0) == 0) link->target = target;
    reply_write(reply, ":%zu\r\n", each_link(proxy, arguments.at[0], link_close_connections, &closed));
    return COMMAND_DONE;
}

static enum command_result link_close_command(struct proxy *proxy, struct command_arguments arguments,
                                              struct control_reply *reply) {
    size_t closed;
    if (!commands_check_name(arguments.at[0], reply)) return COMMAND_DONE;
    each_link(proxy, arguments.at[0], link_close_connections, &closed);
    reply_write(reply, ":%zu\r\n", closed);
    return COMMAND_DONE;
}

static enum command_result link_remove_command(struct proxy *proxy, struct command_arguments arguments,
                                               struct control_reply *reply) {
    struct proxy_link *link = find_link(proxy, arguments.at[0]);
    if (link) link_remove(link);
    reply_write(reply, ":%d\r\n", link != NULL);
    return COMMAND_DONE;
}

static enum command_result link_list_command(struct proxy *proxy, struct command_arguments arguments,
                                             struct control_reply *reply) {
    size_t count = 0;
    (void)arguments;
    for (struct proxy_link *link = proxy->links; link; link = link->next) count++;
    reply_write(reply, "*%zu\r\n", count);
    for (struct proxy_link *link = proxy->links; link; link = link->next) {
        reply_write(reply, "*18\r\n");
        reply_bulk(reply, "name"), reply_bulk(reply, link->name);
        reply_bulk(reply, "listen"), reply_bulk(reply, link->listen.text);
        reply_bulk(reply, "target"), reply_bulk(reply, link->target.text);
        reply_number(reply, "connections", link->connection_count);
        reply_number(reply, "requests", link->requests);
        reply_number(reply, "replies", link->replies);
        reply_number(reply, "pushes", link->pushes);
        reply_number(reply, "bytes-to-server", link->bytes[TO_SERVER]);
        reply_number(reply, "bytes-to-client", link->bytes[TO_CLIENT]);
    }
    return COMMAND_DONE;
}

/* --- RULE --- */

static enum command_result rule_add_command(struct proxy *proxy, struct command_arguments arguments,
                                            struct control_reply *reply) {
    struct rule_error error;
    if (!commands_check_name(arguments.at[0], reply) || !commands_check_name(arguments.at[1], reply))
        return COMMAND_DONE;
    struct rule *before = rule_set_find(proxy, arguments.at[0]);
    if (before && before->active) {
        reply_error(reply, "the rule '%.*s' exists already: RULE REMOVE it first", WORD(arguments.at[0]));
        return COMMAND_DONE;
    }
    struct rule *rule = rule_parse(arguments.at, arguments.count, &error);
    if (rule) rule_set_add(proxy, rule), reply_write(reply, "+OK\r\n");
    else reply_error(reply, "%s", error.text);
    return COMMAND_DONE;
}

static enum command_result rule_remove_command(struct proxy *proxy, struct command_arguments arguments,
                                               struct control_reply *reply) {
    struct rule *rule = rule_set_find(proxy, arguments.at[0]);
    bool active = rule && rule->active;
    if (active) rule_set_remove(proxy, rule);
    reply_write(reply, ":%d\r\n", active);
    return COMMAND_DONE;
}

static void reply_rule(struct control_reply *reply, const struct rule *rule) {
    reply_write(reply, "*14\r\n");
    reply_bulk(reply, "name"), reply_bulk(reply, rule->name);
    reply_number(reply, "fired", rule->fired);
    reply_number(reply, "matched", rule->matched);
    reply_number(reply, "held", rule->held);
    reply_number(reply, "released", rule->released);
    reply_number(reply, "swallowed", rule->swallowed_bytes);
    reply_number(reply, "active", rule->active);
}

static enum command_result rule_list_command(struct proxy *proxy, struct command_arguments arguments,
                                             struct control_reply *reply) {
    size_t count = 0;
    (void)arguments;
    for (const struct rule *rule = proxy->rules; rule; rule = rule->next) count++;
    reply_write(reply, "*%zu\r\n", count);
    for (const struct rule *rule = proxy->rules; rule; rule = rule->next) reply_rule(reply, rule);
    return COMMAND_DONE;
}

static struct rule *known_rule(const struct proxy *proxy, struct span name, struct control_reply *reply) {
    struct rule *rule = rule_set_find(proxy, name);
    if (!rule) reply_error(reply, "there is no rule '%.*s': RULE LIST shows all rules", WORD(name));
    return rule;
}

static enum command_result rule_stat_command(struct proxy *proxy, struct command_arguments arguments,
                                             struct control_reply *reply) {
    const struct rule *rule = known_rule(proxy, arguments.at[0], reply);
    if (rule) reply_rule(reply, rule);
    return COMMAND_DONE;
}

static enum command_result rule_release_command(struct proxy *proxy, struct command_arguments arguments,
                                                struct control_reply *reply) {
    int64_t most = INT64_MAX;
    if (arguments.count == 2 && !rule_number(arguments.at[1], 1, &most)) {
        reply_error(reply, "'%.*s' is no number of messages: RULE RELEASE name [n]", WORD(arguments.at[1]));
        return COMMAND_DONE;
    }
    struct rule *rule = known_rule(proxy, arguments.at[0], reply);
    if (!rule) return COMMAND_DONE;
    if (rule->action != RULE_HOLD)
        reply_error(reply, "rule '%.*s' holds nothing: its action is no hold", WORD(arguments.at[0]));
    else reply_write(reply, ":%zu\r\n", rule_set_release(proxy, rule, (size_t)most));
    return COMMAND_DONE;
}

/* --- the rest --- */

static enum command_result settle_command(struct proxy *proxy, struct command_arguments arguments,
                                          struct control_reply *reply) {
    (void)proxy;
    if (arguments.count == 0) return COMMAND_SETTLE;
    if (rule_word_is(arguments.at[0], "TARGETS")) return COMMAND_TARGETS;
    reply_error(reply, "'%.*s' is no option of SETTLE: the only one is TARGETS", WORD(arguments.at[0]));
    return COMMAND_DONE;
}

static enum command_result stats_command(struct proxy *proxy, struct command_arguments arguments,
                                         struct control_reply *reply) {
    size_t links = 0, rules = 0;
    (void)arguments;
    for (const struct proxy_link *link = proxy->links; link; link = link->next) links++;
    for (const struct rule *rule = proxy->rules; rule; rule = rule->next) rules += rule->active;
    reply_write(reply, "*10\r\n");
    reply_number(reply, "connections", proxy->connections);
    reply_number(reply, "links", links);
    reply_number(reply, "rules", rules);
    reply_number(reply, "memory", proxy->memory_bytes);
    reply_number(reply, "opaque", proxy->opaque);
    return COMMAND_DONE;
}

static enum command_result ping_command(struct proxy *proxy, struct command_arguments arguments,
                                        struct control_reply *reply) {
    (void)proxy;
    (void)arguments;
    reply_write(reply, "+PONG\r\n");
    return COMMAND_DONE;
}

static enum command_result quit_command(struct proxy *proxy, struct command_arguments arguments,
                                        struct control_reply *reply) {
    (void)proxy;
    (void)arguments;
    reply_write(reply, "+OK\r\n");
    return COMMAND_QUIT;
}

static enum command_result shutdown_command(struct proxy *proxy, struct command_arguments arguments,
                                            struct control_reply *reply) {
    quit_command(proxy, arguments, reply);
    return COMMAND_SHUTDOWN;
}

static const struct command {
    const char *name, *subcommand; /* subcommand: or NULL */
    size_t least, most;            /* number of arguments */
    enum command_result (*run)(struct proxy *, struct command_arguments, struct control_reply *);
    const char *usage;
} COMMANDS[] = {
    {"LINK", "ADD", 3, 4, link_add_command, "LINK ADD name listen target [PLAIN|STEPPED|TIMED]"},
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

enum command_result command_run(struct proxy *proxy, const struct span *arguments, size_t count,
                                struct control_reply *reply) {
    for (size_t each = 0; each < sizeof COMMANDS / sizeof COMMANDS[0]; each++) {
        const struct command *command = &COMMANDS[each];
        size_t used = command->subcommand ? 2 : 1;
        if (!rule_word_is(arguments[0], command->name)) continue;
        if (command->subcommand && (count < 2 || !rule_word_is(arguments[1], command->subcommand))) continue;
        if (count - used >= command->least && count - used <= command->most)
            return command->run(proxy, (struct command_arguments){arguments + used, count - used}, reply);
        reply_error(reply, "usage: %s", command->usage);
        return COMMAND_DONE;
    }
    reply_error(reply,
                "unknown command '%.*s': the commands are LINK ADD|TARGET|CLOSE|REMOVE|LIST, RULE "
                "ADD|REMOVE|RELEASE|LIST|STAT, SETTLE, STATS, PING, QUIT and SHUTDOWN",
                WORD(arguments[0]));
    return COMMAND_DONE;
}
