#include "checkers/promises/promise_rule.h"

#include <assert.h>

extern const struct promise_rule PROMISE_RULE_MUTUAL_EXCLUSION, PROMISE_RULE_OWNERSHIP, PROMISE_RULE_LEASE,
    PROMISE_RULE_VALIDITY, PROMISE_RULE_WAIT, PROMISE_RULE_TOKEN, PROMISE_RULE_LIVENESS, PROMISE_RULE_RESIDUE,
    PROMISE_RULE_ANSWER, PROMISE_RULE_WATCHDOG, PROMISE_RULE_RELEASE, PROMISE_RULE_LOSS, PROMISE_RULE_FAIRNESS,
    PROMISE_RULE_AVAILABILITY;

/* In the order in which they are called. */
static const struct promise_rule *const RULES[] = {
    &PROMISE_RULE_MUTUAL_EXCLUSION, &PROMISE_RULE_OWNERSHIP,    &PROMISE_RULE_LEASE,
    &PROMISE_RULE_VALIDITY,         &PROMISE_RULE_WAIT,         &PROMISE_RULE_TOKEN,
    &PROMISE_RULE_LIVENESS,         &PROMISE_RULE_RESIDUE,      &PROMISE_RULE_ANSWER,
    &PROMISE_RULE_WATCHDOG,         &PROMISE_RULE_RELEASE,      &PROMISE_RULE_LOSS,
    &PROMISE_RULE_FAIRNESS,         &PROMISE_RULE_AVAILABILITY,
};

/* An execution whose server is not known counts for all of them. */
static void note_execution(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    struct promise_client *client = client_of(pass, event->client);
    client->executed = true;
    for (int node = 0; node < PROMISE_NODES_MOST; node++)
        if (node == event->node || event->node < 0 || event->node >= PROMISE_NODES_MOST)
            client->executed_ns[node] = event->at_ns;
}

/* Takes in the present event. */
static void take_event(struct promise_pass *pass) {
    const struct call_event *event = pass->event = &pass->events[pass->now];
    assert(pass->now == 0 || event->at_ns >= pass->now_ns); /* promises.h: times never fall */
    pass->now_ns = event->at_ns;
    switch (event->kind) {
    case EVENT_ASK: call_ask(pass); break;
    case EVENT_ANSWER: call_answer(pass); break;
    case EVENT_EXECUTED: note_execution(pass); break;
    case EVENT_FAULT:
    case EVENT_LATE: disturbance_take(pass); break;
    case EVENT_END: pass->over = true; break;
    case EVENT_LEASE:
    case EVENT_IDLE:
    case EVENT_LEFT:
    case EVENT_NOTICE:
    case EVENT_KINDS: break;
    }
}

enum { RULE_COUNT = sizeof RULES / sizeof RULES[0] };

static void judge_idle(struct promise_pass *pass) {
    bool was_idle = pass->now > 0 && pass->event->kind == EVENT_IDLE;
    if (!was_idle || pass->events[pass->now].at_ns <= pass->now_ns) return;
    for (size_t rule = 0; rule < RULE_COUNT; rule++)
        if (RULES[rule]->idle_passes) RULES[rule]->idle_passes(pass);
}

bool promises_judge(const struct library_facts *facts, const struct call_event *events, size_t count,
                    struct promise_findings *findings) {
    struct promise_pass pass;
    findings->broken_count = findings->excused_count = 0;
    if (count >= UINT32_MAX) return false; /* indices of events have 32 bits */
    bool opened = promise_pass_open(&pass, facts, events, count);
    pass.findings = findings;
    for (pass.now = 0; opened && pass.now < count; pass.now++) {
        enum call_event_kind kind = events[pass.now].kind;
        judge_idle(&pass);
        take_event(&pass);
        for (size_t rule = 0; rule < RULE_COUNT && kind < EVENT_KINDS; rule++)
            if (RULES[rule]->on[kind]) RULES[rule]->on[kind](&pass);
    }
    promise_pass_close(&pass);
    return opened;
}

const char *promise_name(enum promise promise) {
    static const char *const NAMES[PROMISES] = {
        [PROMISE_MUTUAL_EXCLUSION] = "mutual_exclusion",
        [PROMISE_OWNERSHIP] = "ownership",
        [PROMISE_LEASE_SHORT] = "lease-too-short",
        [PROMISE_LEASE_LONG] = "lease-too-long",
        [PROMISE_LEASE_ENDLESS] = "lease-endless",
        [PROMISE_RENEWAL] = "renewal",
        [PROMISE_VALIDITY] = "validity",
        [PROMISE_WAIT] = "wait",
        [PROMISE_TOKEN] = "token",
        [PROMISE_REFUSAL] = "refusal",
        [PROMISE_CANCEL] = "cancel",
        [PROMISE_RELEASE] = "release",
        [PROMISE_LOSS] = "loss",
        [PROMISE_LIVENESS] = "liveness",
        [PROMISE_FAIRNESS] = "fairness",
        [PROMISE_PLACE] = "place",
        [PROMISE_RESIDUE] = "residue",
        [PROMISE_ANSWER] = "answer",
    };
    return promise < PROMISES ? NAMES[promise] : NULL;
}
