#include "faults/proxy/disposition.h"

#include "harness/scheduler/clock.h"

/* A slowed message that is longer than its head is passed on in pieces, so that it does not arrive all at once at its
 * end. */
enum { SLOW_PIECE = 16 << 10 };

static const enum disposition DISPOSITIONS[RULE_ACTIONS] = {
    [RULE_HOLD] = DISPOSITION_HOLD,
    [RULE_DROP] = DISPOSITION_SWALLOW,
    [RULE_DUPLICATE] = DISPOSITION_DUPLICATE,
    [RULE_REORDER] = DISPOSITION_REORDER,
    [RULE_TRUNCATE] = DISPOSITION_TRUNCATE,
    [RULE_RESET] = DISPOSITION_RESET,
    [RULE_HALF_CLOSE] = DISPOSITION_HALF_CLOSE,
    [RULE_BLACK_HOLE] = DISPOSITION_BLACK_HOLE,
};

static bool is_lost(enum disposition disposition) {
    return disposition == DISPOSITION_SWALLOW || disposition == DISPOSITION_RESET ||
           disposition == DISPOSITION_BLACK_HOLE;
}

/* --- deciding --- */

static void record_firing(const struct flow *flow, struct rule *rule, uint64_t bytes) {
    struct proxy_link *link = flow->connection->link;
    rule->fired++;
    actor_append(&flow->connection->proxy->actor, (struct history_record){.kind = HISTORY_RULE,
                                                                          .name = rule->text,
                                                                          .value = (int64_t)bytes,
                                                                          .extra = (int64_t)link->text,
                                                                          .op = (uint32_t)rule->fired});
}

static bool is_slowing(const struct rule *rule) {
    return rule->action == RULE_DELAY || rule->action == RULE_RATE;
}

static void slow_down(struct flow *flow, struct rule *rule) {
    if (rule->action == RULE_RATE) {
        flow->ns_per_byte += (double)CLOCK_NS_PER_S / (double)rule->amount;
        return;
    }
    uint64_t jitter_ns = (uint64_t)rule->jitter_ms * CLOCK_NS_PER_MS;
    int64_t later_ns = jitter_ns ? (int64_t)random_below(&rule->random, jitter_ns + 1) : 0;
    flow->delay_ns = timer_heap_later_ns(flow->delay_ns, rule->amount * CLOCK_NS_PER_MS);
    flow->delay_ns = timer_heap_later_ns(flow->delay_ns, later_ns);
}

static void record_match(const struct flow *flow, struct rule *rule, const struct message *message, uint64_t bytes) {
    if (message) record_firing(flow, rule, bytes);
    else if (!rule->raw.goes_on) record_firing(flow, rule, 0);
}

/* Whether the rule applies to bytes that are no message. Those that come at one time count as one: a sender may write a
 * message in two pieces, and whether the proxy reads the first one alone is chance. */
static bool applies_raw(const struct flow *flow, struct rule *rule) {
    if (rule->has_match) return false;
    int64_t now_ns = proxy_now_ns(flow->connection->proxy);
    rule->raw.goes_on = rule->raw.flow == flow && rule->raw.mono_ns == now_ns;
    if (rule->raw.goes_on) return rule->raw.applies;
    rule->raw.flow = flow;
    rule->raw.mono_ns = now_ns;
    rule->raw.applies = rule_count_match(rule);
    return rule->raw.applies;
}

static bool applies(const struct flow *flow, struct rule *rule, const struct message *message) {
    if (!message) return applies_raw(flow, rule);
    return rule_matches(rule, message) && rule_count_match(rule);
}

/* Matches the rules with a message. `bytes == NULL`: an unparsed chunk of that length. */
static void match_rules(struct flow *flow, const struct message *message, uint64_t bytes) {
    const struct rule_list *list = &flow->connection->link->rules[flow->direction];
    struct rule *winner = NULL;
    for (size_t each = 0; each < list->count; each++) {
        struct rule *rule = list->rules[each];
        rule->chosen = false;
        if (rule->is_blanket || !applies(flow, rule, message)) continue;
        bool needs_aside = rule->action == RULE_REORDER || rule->action == RULE_DUPLICATE;
        if (is_slowing(rule)) rule->chosen = true;
        else if (!winner && !(needs_aside && flow->aside_is_waiting)) winner = rule;
    }
    flow->rule = winner;
    if (winner) {
        flow->disposition = DISPOSITIONS[winner->action];
        flow->truncate_left = (uint64_t)winner->amount;
        record_match(flow, winner, message, bytes);
        if (!message && winner->raw.goes_on && winner->action == RULE_HOLD)
            flow->disposition = DISPOSITION_PASS; /* it queues up behind what is held */
        if (is_lost(flow->disposition)) return;
    }
    for (size_t each = 0; each < list->count; each++) {
        if (!list->rules[each]->chosen) continue;
        slow_down(flow, list->rules[each]);
        record_match(flow, list->rules[each], message, bytes);
    }
}

/* Registers a request that goes to the server with the reply matcher. `message` NULL: no rule waits for its reply. */
static void register_request(struct flow *flow, const struct message *message) {
    struct reply_matcher *matcher = &flow->connection->matcher;
    const struct rule_list *awaiting = &flow->connection->link->awaiting;
    bool is_answered = reply_matcher_add_request(matcher, &flow->scanner);
    for (size_t each = 0; message && is_answered && each < awaiting->count; each++)
        if (rule_matches(awaiting->rules[each], message))
            reply_matcher_mark(matcher, matcher->requested - 1, MARK_RULE, (int64_t)awaiting->rules[each]->id);
    if (flow->disposition == DISPOSITION_DUPLICATE && reply_matcher_add_request(matcher, &flow->scanner))
        reply_matcher_mark(matcher, matcher->requested - 1, MARK_SWALLOW, 0);
    if (flow->aside_is_waiting && flow->aside_has_request && is_answered) reply_matcher_swap(matcher);
    if (flow->disposition == DISPOSITION_REORDER) flow->aside_has_request = is_answered;
}

static void decide_request(struct flow *flow, struct span head) {
    struct message message = {.scanner = &flow->scanner, .head = head};
    if (flow->connection->link->rules[TO_SERVER].count)
        match_rules(flow, &message, resp_announced_bytes(&flow->scanner));
    if (!is_lost(flow->disposition)) register_request(flow, &message);
    if (flow->scanner.elements > 0) flow->connection->link->requests++;
}

static void decide_reply(struct flow *flow, struct span head) {
    struct reply_matcher *matcher = &flow->connection->matcher;
    struct proxy_link *link = flow->connection->link;
    struct matched_reply matched = reply_matcher_match_reply(matcher, &flow->scanner);
    struct message message = {.scanner = &flow->scanner, .head = head, .matched = &matched};
    if (matched.swallow) flow->disposition = DISPOSITION_SWALLOW;
    else if (link->rules[TO_CLIENT].count) match_rules(flow, &message, resp_announced_bytes(&flow->scanner));
    reply_matcher_finish_reply(matcher, &matched);
    ++*(matched.push ? &link->pushes : &link->replies);
}

bool disposition_is_watched(const struct flow *flow) {
    const struct proxy_link *link = flow->connection->link;
    if (link->rules[flow->direction].count) return true;
    return flow->direction == TO_SERVER ? link->awaiting.count > 0 : flow->connection->matcher.swallows > 0;
}

void disposition_decide(struct flow *flow, struct span head) {
    flow->disposition = DISPOSITION_PASS;
    flow->rule = NULL;
    flow->delay_ns = 0;
    flow->ns_per_byte = 0;
    flow->in_matcher = disposition_is_watched(flow);
    if (!flow->in_matcher) return;
    if (head.length > MESSAGE_HEAD) head.length = MESSAGE_HEAD; /* more may have come at once */
    if (flow->direction == TO_SERVER) decide_request(flow, head);
    else decide_reply(flow, head);
}

void disposition_count(struct flow *flow) {
    struct proxy_link *link = flow->connection->link;
    if (flow->direction == TO_SERVER) {
        register_request(flow, NULL);
        if (flow->scanner.elements > 0) link->requests++;
        return;
    }
    struct matched_reply matched = reply_matcher_match_reply(&flow->connection->matcher, &flow->scanner);
    reply_matcher_finish_reply(&flow->connection->matcher, &matched);
    ++*(matched.push ? &link->pushes : &link->replies);
}

void disposition_decide_raw(struct flow *flow) {
    flow->disposition = DISPOSITION_PASS;
    flow->rule = flow->input_closed ? flow->rule : NULL;
    flow->delay_ns = 0;
    flow->ns_per_byte = 0;
    if (flow->input_closed) flow->disposition = DISPOSITION_SWALLOW;
    else match_rules(flow, NULL, 0);
}

/* --- carrying out --- */

/* When bytes that go in now come out: a rate sends them one after the other, a delay makes each later. */
static int64_t due_ns(struct flow *flow, size_t length) {
    if (flow->delay_ns == 0 && flow->ns_per_byte <= 0) return 0;
    int64_t now_ns = proxy_now_ns(flow->connection->proxy);
    if (flow->ns_per_byte > 0) {
        if (flow->busy_until_ns < now_ns) flow->busy_until_ns = now_ns;
        double slow_ns = (double)length * flow->ns_per_byte;
        double left_ns = (double)(TIMER_HEAP_LAST - flow->busy_until_ns);
        flow->busy_until_ns += slow_ns < left_ns ? (int64_t)slow_ns : (int64_t)left_ns;
        now_ns = flow->busy_until_ns;
    }
    return timer_heap_later_ns(now_ns, flow->delay_ns);
}

static void pass(struct flow *flow, struct span part) {
    if (flow->delay_ns == 0 && flow->ns_per_byte <= 0) {
        flow_pass(flow, part);
        return;
    }
    size_t most = flow->ns_per_byte > 0 && part.length > MESSAGE_HEAD ? SLOW_PIECE : part.length;
    for (size_t at = 0; at < part.length; at += most) {
        size_t length = part.length - at < most ? part.length - at : most;
        flow_put(flow, (struct span){part.bytes + at, length}, NULL, due_ns(flow, length));
    }
}

static void disposition_swallow(struct flow *flow, size_t length) {
    if (flow->rule) flow->rule->swallowed_bytes += length;
}

static void close_input(struct flow *flow, enum chunk_kind kind) {
    if (flow->input_closed) return;
    flow_put_end(flow, kind);
    flow->input_closed = true;
}

static void truncate_part(struct flow *flow, struct span part, bool is_last) {
    size_t length = part.length < flow->truncate_left ? part.length : (size_t)flow->truncate_left;
    flow->truncate_left -= length;
    if (length) pass(flow, (struct span){part.bytes, length});
    disposition_swallow(flow, part.length - length);
    if (is_last || flow->truncate_left == 0) close_input(flow, CHUNK_CLOSE);
}

void disposition_lose(struct flow *flow, size_t length) {
    if (!flow->black_hole_fired) record_firing(flow, flow->black_hole, flow->opaque ? 0 : length);
    flow->black_hole_fired = true;
    flow->lost = true;
    flow->black_hole->swallowed_bytes += length;
}

void disposition_apply(struct flow *flow, struct span part, bool is_last) {
    switch (flow->disposition) {
    case DISPOSITION_HOLD:
        flow_put(flow, part, flow->rule, due_ns(flow, part.length));
        flow->disposition = DISPOSITION_PASS; /* its other parts queue up behind */
        break;
    case DISPOSITION_SWALLOW: disposition_swallow(flow, part.length); return;
    case DISPOSITION_DUPLICATE:
        pass(flow, part);
        flow_put_aside(flow, part);
        if (is_last) flow_join_aside(flow);
        return;
    case DISPOSITION_REORDER:
        flow_put_aside(flow, part);
        flow->aside_is_waiting = is_last;
        return;
    case DISPOSITION_TRUNCATE: truncate_part(flow, part, is_last); return;
    case DISPOSITION_RESET:
        disposition_swallow(flow, part.length);
        close_input(flow, CHUNK_RESET);
        return;
    case DISPOSITION_HALF_CLOSE:
        pass(flow, part);
        if (is_last) close_input(flow, CHUNK_END);
        return;
    case DISPOSITION_BLACK_HOLE:
        flow->black_hole = flow->rule;
        flow->black_hole_fired = true;
        disposition_lose(flow, part.length);
        return;
    default: pass(flow, part);
    }
    if (is_last && flow->aside_is_waiting) flow_join_aside(flow);
}

/* --- black holes --- */

void disposition_enter_black_hole(struct flow *flow, struct rule *rule) {
    if (flow->black_hole) return;
    flow->black_hole = rule;
    flow->black_hole_fired = false;
    if (flow->source_ended && !flow->end_written && !flow->input_closed) flow->end_lost = true;
    size_t length = flow_discard(flow) + flow->head_length;
    flow_drop_head(flow);
    if (length) disposition_lose(flow, length);
}

void disposition_forget_rule(struct flow *flow, const struct rule *rule, struct rule *other) {
    if (rule->action == RULE_REORDER) {
        if (flow->rule == rule && flow->disposition == DISPOSITION_REORDER) flow->disposition = DISPOSITION_PASS;
        flow_join_aside(flow);
    }
    if (flow->rule == rule) flow->rule = NULL;
    if (flow->black_hole != rule) return;
    flow->black_hole = other;
    flow->black_hole_fired = false;
    if (other) return;
    if (flow->lost) flow->connection->closing = CLOSING_CLOSE;
    else if (flow->end_lost) flow_put_end(flow, CHUNK_END);
}
