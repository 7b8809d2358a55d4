/* drop-message: a published message never arrives. Publishing is at most once: whoever does not hear it, never will. */
#include "faults/rule_fault.h"

extern const struct fault FAULT_DROP_MESSAGE;

static const struct fault_word OPTIONS[] = {
    {"channel", "", "only messages of this channel"},
    {"nth", "1", "the first message that is lost, counted from the injection"},
    {"count", "1", "how many are lost"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct rule_words words = {0};
    rule_word(&words, "drop");
    rule_word(&words, "PUSH");
    rule_option(&words, "KEY", &FAULT_DROP_MESSAGE, target, "channel");
    rule_option(&words, "NTH", &FAULT_DROP_MESSAGE, target, "nth");
    rule_option(&words, "COUNT", &FAULT_DROP_MESSAGE, target, "count");
    return rule_inject(&FAULT_DROP_MESSAGE, target, "redis-*", "to-client", &words, report);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    return rule_prove(target, "fired", report);
}

const struct fault FAULT_DROP_MESSAGE = {
    .name = "drop-message",
    .summary = "lose a published message on its way to one subscriber",
    .proof = "the proxy's count of messages dropped",
    .explanation =
        "A message of a channel (RESP2 or RESP3) is taken out of the stream to the client; everything before and after\n"
        "it arrives. Redis publishes at most once, so this is what a subscriber sees whose output buffer overflowed, or\n"
        "whose connection was being replaced. A waiter that only listens sleeps on while the lock is free.",
    .source = "Redis, \"Pub/Sub\": at-most-once delivery; redisson#763, #5761",
    .target = "client",
    .options = OPTIONS,
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = rule_heal,
};
