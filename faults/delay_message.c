/* delay-message: a published message arrives late. */
#include "faults/rule_fault.h"

extern const struct fault FAULT_DELAY_MESSAGE;

static const struct fault_word OPTIONS[] = {
    {"ms", "1000", "how late, in ms of the trial's time"},
    {"channel", "", "only messages of this channel"},
    {"nth", "1", "the first message that is late, counted from the injection"},
    {"count", "1", "how many are late"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct rule_words words = {0};
    rule_word(&words, "delay");
    rule_word(&words, fault_text(&FAULT_DELAY_MESSAGE, target, "ms"));
    rule_word(&words, "PUSH");
    rule_option(&words, "KEY", &FAULT_DELAY_MESSAGE, target, "channel");
    rule_option(&words, "NTH", &FAULT_DELAY_MESSAGE, target, "nth");
    rule_option(&words, "COUNT", &FAULT_DELAY_MESSAGE, target, "count");
    return rule_inject(&FAULT_DELAY_MESSAGE, target, "redis-*", "to-client", &words, report);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    return rule_prove(target, "fired", report);
}

const struct fault FAULT_DELAY_MESSAGE = {
    .name = "delay-message",
    .summary = "a published message reaches one subscriber late",
    .proof = "the proxy's count of messages delayed",
    .explanation =
        "A message of a channel waits in the network, and everything behind it on the same connection waits too, as in\n"
        "any stream. The waiter that it was to wake wakes up late, perhaps when somebody else has taken the lock again.",
    .source = "Redis, \"Pub/Sub\"; Kleppmann 2016: packets are delayed without bound",
    .target = "client",
    .options = OPTIONS,
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = rule_heal,
};
