/* duplicate-request: a command arrives twice. */
#include "faults/rule_fault.h"

extern const struct fault FAULT_DUPLICATE_REQUEST;

static const struct fault_word OPTIONS[] = {
    {"command", "", "only this command (SET, EVALSHA, ...)"},
    {"key", "", "only a command on this key"},
    {"argument", "", "only a command with this argument"},
    {"nth", "1", "the first command that is doubled, counted from the injection"},
    {"count", "1", "how many are"},
    {"servers", "redis-*", "the servers that receive it twice"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct rule_words words = {0};
    rule_word(&words, "duplicate");
    rule_option(&words, "COMMAND", &FAULT_DUPLICATE_REQUEST, target, "command");
    rule_option(&words, "KEY", &FAULT_DUPLICATE_REQUEST, target, "key");
    rule_option(&words, "ARG", &FAULT_DUPLICATE_REQUEST, target, "argument");
    rule_option(&words, "NTH", &FAULT_DUPLICATE_REQUEST, target, "nth");
    rule_option(&words, "COUNT", &FAULT_DUPLICATE_REQUEST, target, "count");
    const char *servers = fault_text(&FAULT_DUPLICATE_REQUEST, target, "servers");
    return rule_inject(&FAULT_DUPLICATE_REQUEST, target, servers, "to-server", &words, report);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    return rule_prove(target, "fired", report);
}

const struct fault FAULT_DUPLICATE_REQUEST = {
    .name = "duplicate-request",
    .summary = "a command reaches the server twice, as after a retry; the client sees one answer",
    .proof = "the proxy's count of commands doubled",
    .explanation =
        "The server runs the command twice in a row and the second answer is kept from the client: what a library that\n"
        "retries on a timeout does, when the first attempt had arrived after all. A release that is not idempotent then\n"
        "frees what the next one holds, an increment counts twice.",
    .source = "redisson#4871, #5000 (command retry makes unlock run twice), #5066 (over-release)",
    .target = "client",
    .options = OPTIONS,
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = rule_heal,
};
