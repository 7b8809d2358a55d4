/* The faults that are one rule at the proxy. */
#include <string.h>

#include "faults/common/proxy_rule.h"

struct rule_fault {
    const char *servers;   /* of a client: the servers whose links it concerns; NULL: the fault's option "servers" */
    const char *direction; /* to-server or to-client */
    const char *action;    /* the rule's; its amount is the option "ms", if the fault has one */
    const char *kind;      /* PUSH or REPLY: the kind of message to the client; NULL: requests */
    const char *counter;   /* of the rule: above 0 when the fault has taken effect */
};

/* The options of these faults that are match options of a rule. "servers" and "ms" are others. */
static const struct {
    const char *option, *word;
} MATCH_OPTIONS[] = {
    {"command", "COMMAND"}, {"key", "KEY"}, {"channel", "KEY"}, {"argument", "ARG"}, {"nth", "NTH"}, {"count", "COUNT"},
};

static void add_match_option(struct proxy_rule_words *words, const struct fault_target *target, const char *option) {
    for (size_t each = 0; each < sizeof MATCH_OPTIONS / sizeof MATCH_OPTIONS[0]; each++)
        if (strcmp(MATCH_OPTIONS[each].option, option) == 0)
            proxy_rule_add_option(words, MATCH_OPTIONS[each].word, target, option);
}

static bool rule_faults_inject(struct fault_target *target, struct fault_report *report) {
    const struct rule_fault *rule = target->fault->rule;
    struct proxy_rule_words words = {0};
    proxy_rule_add_word(&words, rule->action);
    for (const struct fault_option_type *each = target->fault->options; each->name; each++)
        if (strcmp(each->name, "ms") == 0) proxy_rule_add_word(&words, fault_option_text(target, each->name));
        else add_match_option(&words, target, each->name);
    if (rule->kind) proxy_rule_add_word(&words, rule->kind);
    const char *servers = rule->servers ? rule->servers : fault_option_text(target, "servers");
    return proxy_rule_inject(target, servers, rule->direction, &words, report);
}

static bool rule_faults_prove(struct fault_target *target, struct fault_report *report) {
    return proxy_rule_prove(target, target->fault->rule->counter, report);
}

/* What all of them have in common. */
#define RULE_FAULT                                                                                                     \
    .target = "client", .moment = FAULT_BEFORE_HEAL, .times = FAULT_VIRTUAL | FAULT_REAL,                              \
    .inject = rule_faults_inject, .prove = rule_faults_prove, .heal = proxy_rule_heal

const struct fault FAULT_DELAY_MESSAGE = {
    .row = &FAULT_ROWS[FAULT_ID_DELAY_MESSAGE],
    .explanation =
        "A channel's message is delayed in the network, and with it everything behind it on the same connection,\n"
        "as in any stream. The waiter that it should wake wakes up late, perhaps when another client has taken\n"
        "the lock again.",
    .options = FAULT_OPTIONS({"ms", "1000", "the delay, in ms of the trial's time"},
                             {"channel", "", "only messages of this channel"},
                             {"nth", "1", "the first message that is delayed, counted from the injection"},
                             {"count", "1", "how many messages are delayed"}),
    RULE_FAULT,
    .rule =
        &(const struct rule_fault){
            .servers = "redis-*", .direction = "to-client", .action = "delay", .kind = "PUSH", .counter = "fired"},
};

const struct fault FAULT_DELAY_WRITE = {
    .row = &FAULT_ROWS[FAULT_ID_DELAY_WRITE],
    .explanation =
        "The write has left the client and has not reached the store. Healing lets it arrive, however late, even\n"
        "when the client has given up on it, closed its connection or died. No lock service can take back such a\n"
        "write: only the resource can refuse it, by its fencing token.",
    .options = FAULT_OPTIONS({"command", "SET", "the store's command that is held: SET or ADD"},
                             {"nth", "1", "the first write that is held, counted from the injection"},
                             {"count", "1", "how many writes are held"}),
    RULE_FAULT,
    .rule =
        &(const struct rule_fault){.servers = "store", .direction = "to-server", .action = "hold", .counter = "held"},
};

const struct fault FAULT_DROP_MESSAGE = {
    .row = &FAULT_ROWS[FAULT_ID_DROP_MESSAGE],
    .explanation =
        "A channel's message (RESP2 or RESP3) is removed from the stream to the client; everything before and\n"
        "after it arrives. Redis publishes at most once, so this is what a subscriber sees whose output buffer\n"
        "overflowed, or whose connection was being replaced. A waiter that relies on messages alone keeps\n"
        "sleeping while the lock is free.",
    .options = FAULT_OPTIONS({"channel", "", "only messages of this channel"},
                             {"nth", "1", "the first message that is lost, counted from the injection"},
                             {"count", "1", "how many messages are lost"}),
    RULE_FAULT,
    .rule =
        &(const struct rule_fault){
            .servers = "redis-*", .direction = "to-client", .action = "drop", .kind = "PUSH", .counter = "fired"},
};

const struct fault FAULT_DUPLICATE_REQUEST = {
    .row = &FAULT_ROWS[FAULT_ID_DUPLICATE_REQUEST],
    .explanation =
        "The server runs the command twice in a row and the proxy swallows the second reply: the effect of a\n"
        "library that retries on a timeout although the first attempt arrived. A release that is not idempotent\n"
        "then frees the lock of the next holder, an increment counts twice.",
    .options =
        FAULT_OPTIONS({"command", "", "only this command (SET, EVALSHA, ...)"},
                      {"key", "", "only a command on this key"}, {"argument", "", "only a command with this argument"},
                      {"nth", "1", "the first command that is duplicated, counted from the injection"},
                      {"count", "1", "how many commands are duplicated"},
                      {"servers", "redis-*", "the servers that receive the command twice"}),
    RULE_FAULT,
    .rule = &(const struct rule_fault){.direction = "to-server", .action = "duplicate", .counter = "fired"},
};

const struct fault FAULT_KILL_SUBSCRIBER = {
    .row = &FAULT_ROWS[FAULT_ID_KILL_SUBSCRIBER],
    .explanation =
        "The connection that carries a channel's message is reset instead of delivering it: the message is lost,\n"
        "and the client knows that something was. What it does then is under test: subscribe again and check the\n"
        "lock, or keep sleeping. To close subscribers' connections while no message is on its way, see\n"
        "kill-connections.",
    .options = FAULT_OPTIONS({"channel", "", "only when a message of this channel is on its way"},
                             {"nth", "1", "the first message at which it happens, counted from the injection"},
                             {"count", "1", "how many connections are reset"}),
    RULE_FAULT,
    .rule =
        &(const struct rule_fault){
            .servers = "redis-*", .direction = "to-client", .action = "reset", .kind = "PUSH", .counter = "fired"},
};

const struct fault FAULT_LOSE_REPLY = {
    .row = &FAULT_ROWS[FAULT_ID_LOSE_REPLY],
    .explanation =
        "From the chosen reply on nothing arrives on that connection any more, as when a network fails between\n"
        "the server's write and the client's read; the client gives up by its own timeout and opens a new\n"
        "connection. For an acquire this is the unknown outcome: the key may be set, and the client that set it\n"
        "does not know.",
    .options = FAULT_OPTIONS({"command", "", "only the reply to this command (SET, EVALSHA, ...)"},
                             {"key", "", "only the reply to a command on this key"},
                             {"argument", "", "only the reply to a command with this argument"},
                             {"nth", "1", "the first reply that is lost, counted from the injection"},
                             {"count", "1", "how many connections lose a reply"},
                             {"servers", "redis-*", "the servers whose replies are lost"}),
    RULE_FAULT,
    .rule = &(
        const struct rule_fault){.direction = "to-client", .action = "black-hole", .kind = "REPLY", .counter = "fired"},
};
