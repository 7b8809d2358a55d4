/* kill-subscriber: the subscriber's connection breaks while a message is on its way. */
#include "faults/rule_fault.h"

extern const struct fault FAULT_KILL_SUBSCRIBER;

static const struct fault_word OPTIONS[] = {
    {"channel", "", "only when a message of this channel is on its way"},
    {"nth", "1", "at which message, counted from the injection"},
    {"count", "1", "how often"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct rule_words words = {0};
    rule_word(&words, "reset");
    rule_word(&words, "PUSH");
    rule_option(&words, "KEY", &FAULT_KILL_SUBSCRIBER, target, "channel");
    rule_option(&words, "NTH", &FAULT_KILL_SUBSCRIBER, target, "nth");
    rule_option(&words, "COUNT", &FAULT_KILL_SUBSCRIBER, target, "count");
    return rule_inject(&FAULT_KILL_SUBSCRIBER, target, "redis-*", "to-client", &words, report);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    return rule_prove(target, "fired", report);
}

const struct fault FAULT_KILL_SUBSCRIBER = {
    .name = "kill-subscriber",
    .summary = "a subscriber's connection is reset, and with it the message that was on its way",
    .proof = "the proxy's count of connections reset",
    .explanation =
        "The connection that carries a channel's message is reset instead of delivering it: the message is lost and the\n"
        "client knows that something was. What it does then is what is being tested: subscribe again and look at the\n"
        "lock, or sleep on. To cut subscribers when nothing is on its way, see kill-connections.",
    .source = "redisson#6026, #2180; Redis, \"Client handling\": output buffer limits of pub/sub clients",
    .target = "client",
    .options = OPTIONS,
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = rule_heal,
};
