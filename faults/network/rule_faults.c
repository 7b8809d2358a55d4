#include "faults/network/rule_faults.h"

#include <string.h>

#include "faults/common/proxy_rule.h"

/* The options of these faults that are match options of a rule; "ms" and "servers" are not. */
static const struct {
    const char *option, *word;
} MATCH_OPTIONS[] = {
    {"command", "COMMAND"}, {"key", "KEY"}, {"channel", "KEY"}, {"argument", "ARG"}, {"nth", "NTH"}, {"count", "COUNT"},
};

static const struct rule_fault *row_of(const struct fault_target *target) {
    return (const struct rule_fault *)(const void *)target->fault;
}

static void add_match_option(struct proxy_rule_words *words, const struct fault_target *target, const char *option) {
    for (size_t each = 0; each < sizeof MATCH_OPTIONS / sizeof MATCH_OPTIONS[0]; each++)
        if (strcmp(MATCH_OPTIONS[each].option, option) == 0)
            proxy_rule_add_option(words, MATCH_OPTIONS[each].word, target, option);
}

static bool rule_faults_inject(struct fault_target *target, struct fault_report *report) {
    const struct rule_fault *row = row_of(target);
    const struct fault_option_type *options = row->fault.options;
    struct proxy_rule_words words = {0};
    proxy_rule_add_word(&words, row->action);
    for (const struct fault_option_type *each = options; each->name; each++)
        if (strcmp(each->name, "ms") == 0) proxy_rule_add_word(&words, fault_option_text(target, each->name));
    if (row->kind) proxy_rule_add_word(&words, row->kind);
    for (const struct fault_option_type *each = options; each->name; each++)
        add_match_option(&words, target, each->name);
    const char *servers = row->servers ? row->servers : fault_option_text(target, "servers");
    return proxy_rule_inject(target, servers, row->direction, &words, report);
}

static bool rule_faults_prove(struct fault_target *target, struct fault_report *report) {
    return proxy_rule_prove(target, row_of(target)->counter, report);
}

/* clang-format off */
#define OPTIONS(...) (const struct fault_option_type[]){__VA_ARGS__, {0}}

/* What all rows have in common. */
#define RULE_FAULT                                                                                                     \
    .fault.target = "client", .fault.moment = FAULT_BEFORE_HEAL, .fault.times = FAULT_VIRTUAL | FAULT_REAL,            \
    .fault.inject = rule_faults_inject, .fault.prove = rule_faults_prove, .fault.heal = proxy_rule_heal

/* Sorted by name. */
const struct rule_fault RULE_FAULTS[] = {
    [DELAY_MESSAGE] = {
        .fault.row = &FAULT_ROWS[FAULT_ID_DELAY_MESSAGE],
        .fault.explanation =
            "A channel's message is delayed in the network, and with it everything behind it on the same connection,\n"
            "as in any stream. The waiter that it should wake wakes up late, perhaps when another client has taken\n"
            "the lock again.",
        .fault.options = OPTIONS(
            {"ms", "1000", "the delay, in ms of the trial's time"},
            {"channel", "", "only messages of this channel"},
            {"nth", "1", "the first message that is delayed, counted from the injection"},
            {"count", "1", "how many messages are delayed"}),
        RULE_FAULT,
        .servers = "redis-*",
        .direction = "to-client",
        .action = "delay",
        .kind = "PUSH",
        .counter = "fired",
    },
    [DELAY_WRITE] = {
        .fault.row = &FAULT_ROWS[FAULT_ID_DELAY_WRITE],
        .fault.explanation =
            "The write has left the client and has not reached the store. Healing lets it arrive, however late, even\n"
            "when the client has given up on it, closed its connection or died. No lock service can take back such a\n"
            "write: only the resource can refuse it, by its fencing token.",
        .fault.options = OPTIONS(
            {"command", "SET", "the store's command that is held: SET or ADD"},
            {"nth", "1", "the first write that is held, counted from the injection"},
            {"count", "1", "how many writes are held"}),
        RULE_FAULT,
        .servers = "store",
        .direction = "to-server",
        .action = "hold",
        .counter = "held",
    },
    [DROP_MESSAGE] = {
        .fault.row = &FAULT_ROWS[FAULT_ID_DROP_MESSAGE],
        .fault.explanation =
            "A channel's message (RESP2 or RESP3) is removed from the stream to the client; everything before and\n"
            "after it arrives. Redis publishes at most once, so this is what a subscriber sees whose output buffer\n"
            "overflowed, or whose connection was being replaced. A waiter that relies on messages alone keeps\n"
            "sleeping while the lock is free.",
        .fault.options = OPTIONS(
            {"channel", "", "only messages of this channel"},
            {"nth", "1", "the first message that is lost, counted from the injection"},
            {"count", "1", "how many messages are lost"}),
        RULE_FAULT,
        .servers = "redis-*",
        .direction = "to-client",
        .action = "drop",
        .kind = "PUSH",
        .counter = "fired",
    },
    [DUPLICATE_REQUEST] = {
        .fault.row = &FAULT_ROWS[FAULT_ID_DUPLICATE_REQUEST],
        .fault.explanation =
            "The server runs the command twice in a row and the proxy swallows the second reply: the effect of a\n"
            "library that retries on a timeout although the first attempt arrived. A release that is not idempotent\n"
            "then frees the lock of the next holder, an increment counts twice.",
        .fault.options = OPTIONS(
            {"command", "", "only this command (SET, EVALSHA, ...)"},
            {"key", "", "only a command on this key"},
            {"argument", "", "only a command with this argument"},
            {"nth", "1", "the first command that is duplicated, counted from the injection"},
            {"count", "1", "how many commands are duplicated"},
            {"servers", "redis-*", "the servers that receive the command twice"}),
        RULE_FAULT,
        .direction = "to-server",
        .action = "duplicate",
        .counter = "fired",
    },
    [KILL_SUBSCRIBER] = {
        .fault.row = &FAULT_ROWS[FAULT_ID_KILL_SUBSCRIBER],
        .fault.explanation =
            "The connection that carries a channel's message is reset instead of delivering it: the message is lost,\n"
            "and the client knows that something was. What it does then is under test: subscribe again and check the\n"
            "lock, or keep sleeping. To close subscribers' connections while no message is on its way, see\n"
            "kill-connections.",
        .fault.options = OPTIONS(
            {"channel", "", "only when a message of this channel is on its way"},
            {"nth", "1", "the first message at which it happens, counted from the injection"},
            {"count", "1", "how many connections are reset"}),
        RULE_FAULT,
        .servers = "redis-*",
        .direction = "to-client",
        .action = "reset",
        .kind = "PUSH",
        .counter = "fired",
    },
    [LOSE_REPLY] = {
        .fault.row = &FAULT_ROWS[FAULT_ID_LOSE_REPLY],
        .fault.explanation =
            "From the chosen reply on nothing arrives on that connection any more, as when a network fails between\n"
            "the server's write and the client's read; the client gives up by its own timeout and opens a new\n"
            "connection. For an acquire this is the unknown outcome: the key may be set, and the client that set it\n"
            "does not know.",
        .fault.options = OPTIONS(
            {"command", "", "only the reply to this command (SET, EVALSHA, ...)"},
            {"key", "", "only the reply to a command on this key"},
            {"argument", "", "only the reply to a command with this argument"},
            {"nth", "1", "the first reply that is lost, counted from the injection"},
            {"count", "1", "how many connections lose a reply"},
            {"servers", "redis-*", "the servers whose replies are lost"}),
        RULE_FAULT,
        .direction = "to-client",
        .action = "black-hole",
        .kind = "REPLY",
        .counter = "fired",
    },
};
/* clang-format on */
