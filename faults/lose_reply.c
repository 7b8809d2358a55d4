/* lose-reply: the command ran, its answer is lost. */
#include "faults/rule_fault.h"

extern const struct fault FAULT_LOSE_REPLY;

static const struct fault_word OPTIONS[] = {
    {"command", "", "only the answer to this command (SET, EVALSHA, ...)"},
    {"key", "", "only to a command on this key"},
    {"argument", "", "only to a command with this argument"},
    {"nth", "1", "the first answer that is lost, counted from the injection"},
    {"count", "1", "how many connections lose theirs"},
    {"servers", "redis-*", "the servers whose answers are meant"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct rule_words words = {0};
    rule_word(&words, "black-hole");
    rule_word(&words, "REPLY");
    rule_option(&words, "COMMAND", &FAULT_LOSE_REPLY, target, "command");
    rule_option(&words, "KEY", &FAULT_LOSE_REPLY, target, "key");
    rule_option(&words, "ARG", &FAULT_LOSE_REPLY, target, "argument");
    rule_option(&words, "NTH", &FAULT_LOSE_REPLY, target, "nth");
    rule_option(&words, "COUNT", &FAULT_LOSE_REPLY, target, "count");
    const char *servers = fault_text(&FAULT_LOSE_REPLY, target, "servers");
    return rule_inject(&FAULT_LOSE_REPLY, target, servers, "to-client", &words, report);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    return rule_prove(target, "fired", report);
}

const struct fault FAULT_LOSE_REPLY = {
    .name = "lose-reply",
    .summary = "a command runs, and its answer never reaches the client",
    .proof = "the proxy's count of answers swallowed",
    .explanation =
        "From the chosen answer on nothing arrives on that connection any more, as when a network fails between the\n"
        "server's write and the client's read; the client gives up by its own limit and makes a new connection. For an\n"
        "acquire this is the unknown outcome: the key may be set, and the client that set it does not know.",
    .source = "redisson#1966, #4178, #4706: an answer that times out leaves a lock, a count or a renewal behind",
    .target = "client",
    .options = OPTIONS,
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = rule_heal,
};
