#include "faults/proxy/rule.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct action {
    const char *name, *amount; /* amount: the meaning of the number after the name, or NULL */
} ACTIONS[RULE_ACTIONS] = {
    [RULE_DELAY] = {"delay", "milliseconds"},
    [RULE_RATE] = {"rate", "bytes per second, at least 1"},
    [RULE_HOLD] = {"hold", NULL},
    [RULE_DROP] = {"drop", NULL},
    [RULE_DUPLICATE] = {"duplicate", NULL},
    [RULE_REORDER] = {"reorder", NULL},
    [RULE_TRUNCATE] = {"truncate", "bytes"},
    [RULE_RESET] = {"reset", NULL},
    [RULE_HALF_CLOSE] = {"half-close", NULL},
    [RULE_BLACK_HOLE] = {"black-hole", NULL},
};

/* The arguments of RULE ADD, and the next one to be parsed. */
struct rule_parser {
    const struct span *arguments;
    size_t count, at;
    struct history_error *error;
};

#define WORD(span) (int)((span).length < 60 ? (span).length : 60), (span).bytes

bool rule_number(struct span word, int64_t least, int64_t *number) {
    char text[24], *end;
    if (word.length == 0 || word.length >= sizeof text) return false;
    memcpy(text, word.bytes, word.length);
    text[word.length] = '\0';
    if (text[0] != '-' && (text[0] < '0' || text[0] > '9')) return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end != '\0' || value < least || value > INT64_MAX / 1000000) return false;
    *number = value;
    return true;
}

static char *copy(struct span span) {
    char *text = strndup(span.bytes, span.length);
    if (!text) abort();
    return text;
}

void rule_free(struct rule *rule) {
    if (!rule) return;
    free(rule->name);
    free(rule->pattern);
    free(rule->command); /* the subcommand is part of it */
    free((void *)(uintptr_t)rule->key.bytes);
    free((void *)(uintptr_t)rule->argument.bytes);
    free(rule);
}

static bool parse_direction(struct rule *rule, struct rule_parser *parser) {
    struct span word = parser->arguments[parser->at++];
    bool both = span_is_word(word, "both");
    rule->directions[TO_SERVER] = both || span_is_word(word, "to-server");
    rule->directions[TO_CLIENT] = both || span_is_word(word, "to-client");
    if (rule->directions[TO_SERVER] || rule->directions[TO_CLIENT]) return true;
    return history_fail(parser->error, "'%.*s' is no direction: use to-server, to-client or both", WORD(word));
}

static bool parse_action(struct rule *rule, struct rule_parser *parser) {
    struct span word = parser->arguments[parser->at++];
    int action = 0;
    while (action < RULE_ACTIONS && !span_is_word(word, ACTIONS[action].name)) action++;
    rule->action = (enum rule_action)action;
    if (action == RULE_ACTIONS)
        return history_fail(
            parser->error,
            "'%.*s' is no action: the actions are delay, rate, hold, drop, duplicate, reorder, truncate, reset, "
            "half-close and black-hole",
            WORD(word));
    if (!ACTIONS[action].amount) return true;
    if (parser->at < parser->count && rule_number(parser->arguments[parser->at++], action == RULE_RATE, &rule->amount))
        return true;
    return history_fail(parser->error, "%s needs a number: %s", ACTIONS[action].name, ACTIONS[action].amount);
}

static void set_command(struct rule *rule, struct span word) {
    free(rule->command);
    rule->command = copy(word);
    rule->subcommand = strchr(rule->command, ' ');
    if (rule->subcommand) *rule->subcommand++ = '\0';
}

static bool set_bytes(struct span *span, struct span word) {
    char *bytes = malloc(word.length + 1);
    if (!bytes) abort();
    if (word.length) memcpy(bytes, word.bytes, word.length);
    free((void *)(uintptr_t)span->bytes);
    *span = (struct span){bytes, word.length};
    return true;
}

/* Sets an option that has a value. False: there is no such option, or the value does not fit. */
static bool set_option(struct rule *rule, struct span option, struct span value) {
    int64_t seed;
    if (span_is_word(option, "COMMAND")) {
        set_command(rule, value);
        return value.length > 0;
    }
    if (span_is_word(option, "KEY")) return set_bytes(&rule->key, value);
    if (span_is_word(option, "ARG")) return set_bytes(&rule->argument, value);
    if (span_is_word(option, "NTH")) return rule_number(value, 1, &rule->nth);
    if (span_is_word(option, "COUNT")) return rule_number(value, 1, &rule->count);
    if (span_is_word(option, "JITTER")) return rule->action == RULE_DELAY && rule_number(value, 0, &rule->jitter_ms);
    if (!span_is_word(option, "SEED") || !rule_number(value, 0, &seed)) return false;
    rule->has_seed = true;
    rule->seed = (uint64_t)seed;
    return true;
}

static bool rule_parse_options(struct rule *rule, struct rule_parser *parser) {
    while (parser->at < parser->count) {
        struct span option = parser->arguments[parser->at++];
        bool is_push = span_is_word(option, "PUSH"), is_reply = span_is_word(option, "REPLY");
        rule->push |= is_push;
        rule->reply |= is_reply;
        if (is_push || is_reply) continue;
        if (parser->at < parser->count && set_option(rule, option, parser->arguments[parser->at++])) continue;
        return history_fail(
            parser->error,
            "'%.*s' is no option, or its value does not fit: the options are COMMAND name, KEY bytes, ARG bytes, PUSH, "
            "REPLY, NTH n, COUNT n, SEED n and (of delay) JITTER ms",
            WORD(option));
    }
    if ((rule->push || rule->reply) && rule->directions[TO_SERVER])
        return history_fail(parser->error,
                            "pushes and replies go to the client: with PUSH or REPLY the direction is to-client");
    if (rule->push && rule->reply)
        return history_fail(parser->error, "no message is a PUSH and a REPLY: add two rules");
    return true;
}

struct rule *rule_parse(const struct span *arguments, size_t count, struct history_error *error) {
    if (count < 4 || arguments[0].length == 0) {
        history_fail(error, "usage: RULE ADD name pattern to-server|to-client|both action [options]");
        return NULL;
    }
    struct rule *rule = calloc(1, sizeof *rule);
    if (!rule) abort();
    rule->nth = 1;
    rule->active = true;
    rule->name = copy(arguments[0]);
    rule->pattern = copy(arguments[1]);
    struct rule_parser parser = {.arguments = arguments, .count = count, .at = 2, .error = error};
    if (!parse_direction(rule, &parser) || !parse_action(rule, &parser) || !rule_parse_options(rule, &parser)) {
        rule_free(rule);
        return NULL;
    }
    rule->has_match = rule->command || rule->key.bytes || rule->argument.bytes || rule->push || rule->reply;
    bool always = !rule->has_match && rule->nth == 1 && rule->count == 0;
    rule->is_blanket = rule->action == RULE_BLACK_HOLE && always;
    return rule;
}

bool rule_concerns(const struct rule *rule, const char *link, enum direction direction) {
    return rule->active && rule->directions[direction] && fnmatch(rule->pattern, link, 0) == 0;
}

static bool span_equals(struct span one, struct span other) {
    return one.length == other.length && (one.length == 0 || memcmp(one.bytes, other.bytes, one.length) == 0);
}

static bool is_script(struct span command) {
    static const char *const SCRIPTS[] = {"EVAL", "EVALSHA", "FCALL", "EVAL_RO", "EVALSHA_RO", "FCALL_RO"};
    for (size_t each = 0; each < sizeof SCRIPTS / sizeof SCRIPTS[0]; each++)
        if (span_is_word(command, SCRIPTS[each])) return true;
    return false;
}

/* The index of the element that is the key: of a script the first of its keys (-1: it has none), of a push the channel.
 */
static int64_t key_place(const struct message *message, struct span first, struct resp_cursor after) {
    struct span script, keys;
    int64_t count;
    if (message->matched) return span_is_word(first, "pmessage") ? 2 : 1;
    if (!is_script(first)) return 1;
    bool has_key = resp_next(&after, &script) && resp_next(&after, &keys) && rule_number(keys, 1, &count);
    return has_key ? 3 : -1;
}

static bool matches_words(const struct rule *rule, const struct message *message) {
    struct resp_cursor cursor = resp_elements(message->scanner, message->head);
    struct span word;
    bool command = !rule->command, subcommand = !rule->subcommand, key = !rule->key.bytes,
         argument = !rule->argument.bytes;
    int64_t key_at = 1;
    for (int64_t place = 0; resp_next(&cursor, &word); place++) {
        if (place == 0 && rule->key.bytes) key_at = key_place(message, word, cursor);
        if (place == 0 && rule->command && !(command = span_is_word(word, rule->command))) return false;
        if (place == 1 && rule->subcommand) subcommand = span_is_word(word, rule->subcommand);
        if (place == key_at && rule->key.bytes) key = span_equals(word, rule->key);
        if (place > 0 && rule->argument.bytes && span_equals(word, rule->argument)) argument = true;
        if (command && subcommand && key && argument) return true;
    }
    return command && subcommand && key && argument;
}

static bool has_mark(const struct matched_reply *matched, uint32_t id) {
    for (size_t each = 0; each < matched->count; each++)
        if (matched->marks[each].kind == MARK_RULE && matched->marks[each].number == (int64_t)id) return true;
    return false;
}

bool rule_matches(const struct rule *rule, const struct message *message) {
    if (!rule->has_match) return true;
    if (message->matched && !rule->push) return has_mark(message->matched, rule->id);
    if (message->matched && !message->matched->push) return false;
    /* The quick answer for nearly every message: it is another command. */
    const struct resp_word *first = &message->scanner->words[0];
    if (rule->command && first->length <= RESP_WORD && !resp_word_is(first, rule->command)) return false;
    return matches_words(rule, message);
}

bool rule_count_match(struct rule *rule) {
    rule->matched++;
    return rule->matched >= (uint64_t)rule->nth && (rule->count == 0 || rule->fired < (uint64_t)rule->count);
}
