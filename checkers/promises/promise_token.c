/* Token, of libraries whose grants have tokens: each grant (exclusive, write) has caller.text, no two grants of one
 * resource have the same, and a grant that was asked for after another one was answered has the greater one. A grant
 * whose answer comes while another owner certainly holds has the smaller one: it can only have been granted before that
 * one.
 *
 * A grant of an owner that may have held already is compared with nothing: re-entry may keep the token. Nothing is
 * compared after a server may have lost data. */
#include "checkers/promises/promise_rule.h"

/* The answer that granted the same token to another owner; 0: none. */
static uint32_t same_token(const struct promise_pass *pass, const struct promise_call *call, int64_t token) {
    for (const struct promise_call *each = pass->calls; each < pass->calls + pass->now; each++) {
        if (!each->ask || !each->answer || each == call || each->ask->asked.verb != CALL_ACQUIRE) continue;
        const struct call_event *answer = &pass->events[each->answer];
        if (each->owner != call->owner && each->owner->resource == call->owner->resource &&
            answer->outcome == OUTCOME_OK && answer->token == token && each->ask->asked.mode != MODE_READ)
            return each->answer;
    }
    return 0;
}

/* The answer that granted a smaller token to another owner, which certainly holds with it; 0: none. */
static uint32_t later_holder(const struct promise_pass *pass, const struct promise_call *call, int64_t token) {
    static const enum call_mode SOLE[] = {MODE_EXCLUSIVE, MODE_WRITE};
    for (const struct promise_owner *each = pass->owners; each < pass->owners + pass->owner_count; each++) {
        if (each == call->owner || each->resource != call->owner->resource) continue;
        for (size_t mode = 0; mode < sizeof SOLE / sizeof SOLE[0]; mode++) {
            if (!holds_in_mode(pass, each, SOLE[mode])) continue;
            uint32_t answer = each->grant[SOLE[mode]];
            if (pass->events[answer].token > 0 && pass->events[answer].token < token) return answer;
        }
    }
    return 0;
}

static void promise_token_answered(struct promise_pass *pass) {
    const struct promise_call *call = granted_call(pass);
    const struct call_event *event = pass->event;
    if (!call || !pass->facts->tokens || pass->data) return;
    const struct call *asked = &call->ask->asked;
    if (asked->mode == MODE_READ || asked->mode == MODE_PERMIT) return;
    const struct caller_name caller = caller_name_of(asked);
    uint32_t same = event->token ? same_token(pass, call, event->token) : 0;
    uint32_t later = call->alone && !same ? later_holder(pass, call, event->token) : 0;
    if (event->token == 0)
        promise_break(pass, PROMISE_TOKEN, pass->now, 0, 0, "%s was granted without a token", caller.text);
    else if (call->alone && call->token_floor && event->token < call->token_floor)
        promise_break(pass, PROMISE_TOKEN, call->token_from, call->token_floor, event->token,
                      "%s was granted token %lld after token %lld", caller.text, (long long)event->token,
                      (long long)call->token_floor);
    else if (same || (call->alone && event->token == call->token_floor))
        promise_break(pass, PROMISE_TOKEN, same ? same : call->token_from, event->token + 1, event->token,
                      "%s was granted token %lld, which another grant has", caller.text, (long long)event->token);
    else if (later)
        promise_break(pass, PROMISE_TOKEN, later, pass->events[later].token, event->token,
                      "%s was granted token %lld late, while another holds with token %lld", caller.text,
                      (long long)event->token, (long long)pass->events[later].token);
}

const struct promise_rule PROMISE_RULE_TOKEN = {.on = {[EVENT_ANSWER] = promise_token_answered}};
