/* delay-write: the client's write to the resource stays in the network until it is let go. */
#include "faults/rule_fault.h"

extern const struct fault FAULT_DELAY_WRITE;

static const struct fault_word OPTIONS[] = {
    {"command", "SET", "the store's command that is meant: SET or ADD"},
    {"nth", "1", "the first write that is held, counted from the injection"},
    {"count", "1", "how many are"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct rule_words words = {0};
    rule_word(&words, "hold");
    rule_option(&words, "COMMAND", &FAULT_DELAY_WRITE, target, "command");
    rule_option(&words, "NTH", &FAULT_DELAY_WRITE, target, "nth");
    rule_option(&words, "COUNT", &FAULT_DELAY_WRITE, target, "count");
    return rule_inject(&FAULT_DELAY_WRITE, target, "store", "to-server", &words, report);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    return rule_prove(target, "held", report);
}

const struct fault FAULT_DELAY_WRITE = {
    .name = "delay-write",
    .summary = "a client's write to the resource is held in the network until the fault is healed",
    .proof = "the proxy holds the write",
    .explanation =
        "The write has left the client and has not reached the store; healing lets it arrive, however late, even when\n"
        "the client has given up on it, closed its connection or died. No lock service can take such a write back: only\n"
        "the resource can refuse it, by its fencing token.",
    .source = "Kleppmann 2016, \"Protecting a resource with a lock\": the packet delayed for 90 seconds (GitHub, 2012)",
    .target = "client",
    .options = OPTIONS,
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = rule_heal,
};
