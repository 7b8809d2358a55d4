#include "faults/proxy/fate.h"

#include <stdlib.h>
#include <string.h>

#include "faults/proxy/link.h"
#include "harness/clock.h"

/* A slowed message that is longer than its head goes on in pieces, so that it does not come all at once at its end. */
enum { SLOW_PIECE = 16 << 10 };

static const enum fate FATES[RULE_ACTIONS] = {
    [RULE_HOLD] = FATE_HOLD,
    [RULE_DROP] = FATE_SWALLOW,
    [RULE_DUPLICATE] = FATE_TWICE,
    [RULE_REORDER] = FATE_LATER,
    [RULE_TRUNCATE] = FATE_TRUNCATE,
    [RULE_RESET] = FATE_RESET,
    [RULE_HALF_CLOSE] = FATE_HALF_CLOSE,
    [RULE_BLACK_HOLE] = FATE_BLACK_HOLE,
};

static bool is_lost(enum fate fate) {
    return fate == FATE_SWALLOW || fate == FATE_RESET || fate == FATE_BLACK_HOLE;
}

/* --- deciding --- */

static void fire(const struct flow *flow, struct rule *rule, uint64_t bytes) {
    struct link *link = flow->connection->link;
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
    flow->delay_ns += rule->amount * CLOCK_NS_PER_MS;
    if (jitter_ns) flow->delay_ns += (int64_t)random_below(&rule->random, jitter_ns + 1);
}

/* Asks the rules about a message, NULL: about bytes that are none. */
static void choose(struct flow *flow, const struct message *message, uint64_t bytes) {
    const struct rule_list *list = &flow->connection->link->rules[flow->direction];
    struct rule *winner = NULL;
    for (size_t each = 0; each < list->count; each++) {
        struct rule *rule = list->rules[each];
        rule->chosen = false;
        if (rule->is_blanket || !(message ? rule_matches(rule, message) : rule_matches_raw(rule))) continue;
        if (!rule_count_match(rule)) continue;
        bool needs_aside = rule->action == RULE_REORDER || rule->action == RULE_DUPLICATE;
        if (is_slowing(rule)) rule->chosen = true;
        else if (!winner && !(needs_aside && flow->aside_is_waiting)) winner = rule;
    }
    flow->rule = winner;
    if (winner) {
        flow->fate = FATES[winner->action];
        flow->truncate_left = (uint64_t)winner->amount;
        fire(flow, winner, bytes);
        if (is_lost(flow->fate)) return;
    }
    for (size_t each = 0; each < list->count; each++) {
        if (!list->rules[each]->chosen) continue;
        slow_down(flow, list->rules[each]);
        fire(flow, list->rules[each], bytes);
    }
}

/* A request is on its way: its reply will be known. */
static void ask(struct flow *flow, const struct message *message) {
    struct ledger *ledger = &flow->connection->ledger;
    const struct rule_list *awaiting = &flow->connection->link->awaiting;
    bool asked = ledger_ask(ledger, &flow->scanner);
    for (size_t each = 0; message && asked && each < awaiting->count; each++)
        if (rule_matches(awaiting->rules[each], message))
            ledger_mark(ledger, ledger->asked - 1, MARK_RULE, (int64_t)awaiting->rules[each]->id);
    if (flow->fate == FATE_TWICE && ledger_ask(ledger, &flow->scanner))
        ledger_mark(ledger, ledger->asked - 1, MARK_SWALLOW, 0);
    if (flow->aside_is_waiting && flow->aside_was_asked && asked) ledger_swap(ledger);
    if (flow->fate == FATE_LATER) flow->aside_was_asked = asked;
}

static void decide_request(struct flow *flow, struct span head) {
    struct message message = {.scanner = &flow->scanner, .head = head};
    if (flow->connection->link->rules[TO_SERVER].count) choose(flow, &message, resp_told_bytes(&flow->scanner));
    if (!is_lost(flow->fate)) ask(flow, &message);
    if (flow->scanner.elements > 0) flow->connection->link->requests++;
}

static void decide_reply(struct flow *flow, struct span head) {
    struct ledger *ledger = &flow->connection->ledger;
    struct link *link = flow->connection->link;
    struct answer answer = ledger_answer(ledger, &flow->scanner);
    struct message message = {.scanner = &flow->scanner, .head = head, .answer = &answer};
    if (answer.swallow) flow->fate = FATE_SWALLOW;
    else if (link->rules[TO_CLIENT].count) choose(flow, &message, resp_told_bytes(&flow->scanner));
    ledger_settle(ledger, &answer);
    ++*(answer.push ? &link->pushes : &link->replies);
}

static bool is_watched(const struct flow *flow) {
    const struct link *link = flow->connection->link;
    if (link->rules[flow->direction].count) return true;
    return flow->direction == TO_SERVER ? link->awaiting.count > 0 : flow->connection->ledger.swallows > 0;
}

static void decide(struct flow *flow, struct span head) {
    flow->fate = FATE_PASS;
    flow->rule = NULL;
    flow->delay_ns = 0;
    flow->ns_per_byte = 0;
    flow->counted = is_watched(flow);
    if (!flow->counted) return;
    if (head.length > MESSAGE_HEAD) head.length = MESSAGE_HEAD; /* however much has come at once */
    if (flow->direction == TO_SERVER) decide_request(flow, head);
    else decide_reply(flow, head);
}

/* Nobody had asked for a look at the message when it began: now it is only counted. */
static void count(struct flow *flow) {
    struct link *link = flow->connection->link;
    if (flow->direction == TO_SERVER) {
        ask(flow, NULL);
        if (flow->scanner.elements > 0) link->requests++;
        return;
    }
    struct answer answer = ledger_answer(&flow->connection->ledger, &flow->scanner);
    ledger_settle(&flow->connection->ledger, &answer);
    ++*(answer.push ? &link->pushes : &link->replies);
}

/* --- carrying out --- */

/* When bytes that go in now come out: a slow line sends one after the other, and a long one brings each later. */
static int64_t due_ns(struct flow *flow, size_t length) {
    if (flow->delay_ns == 0 && flow->ns_per_byte <= 0) return 0;
    int64_t now_ns = stage_mono_ns(flow->connection->proxy->actor.stage);
    if (flow->ns_per_byte > 0) {
        if (flow->busy_until_ns < now_ns) flow->busy_until_ns = now_ns;
        double slow_ns = (double)length * flow->ns_per_byte;
        double left_ns = (double)(AGENDA_NEVER / 2 - flow->busy_until_ns);
        flow->busy_until_ns += slow_ns < left_ns ? (int64_t)slow_ns : (int64_t)left_ns;
        now_ns = flow->busy_until_ns;
    }
    return now_ns + flow->delay_ns;
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

static void swallow(struct flow *flow, size_t length) {
    if (flow->rule) flow->rule->swallowed_bytes += length;
}

static void shut(struct flow *flow, enum chunk_kind kind) {
    if (flow->shut) return;
    flow_put_end(flow, kind);
    flow->shut = true;
}

static void truncate_part(struct flow *flow, struct span part, bool whole) {
    size_t length = part.length < flow->truncate_left ? part.length : (size_t)flow->truncate_left;
    flow->truncate_left -= length;
    if (length) pass(flow, (struct span){part.bytes, length});
    swallow(flow, part.length - length);
    if (whole || flow->truncate_left == 0) shut(flow, CHUNK_CLOSE);
}

void fate_lose(struct flow *flow, size_t length) {
    if (!flow->black_hole_fired) fire(flow, flow->black_hole, length);
    flow->black_hole_fired = true;
    flow->lost = true;
    flow->black_hole->swallowed_bytes += length;
}

static void carry(struct flow *flow, struct span part, bool whole) {
    switch (flow->fate) {
    case FATE_HOLD:
        flow_put(flow, part, flow->rule, due_ns(flow, part.length));
        flow->fate = FATE_PASS; /* the rest of it follows */
        break;
    case FATE_SWALLOW: swallow(flow, part.length); return;
    case FATE_TWICE:
        pass(flow, part);
        flow_put_aside(flow, part);
        if (whole) flow_join_aside(flow);
        return;
    case FATE_LATER:
        flow_put_aside(flow, part);
        flow->aside_is_waiting = whole;
        return;
    case FATE_TRUNCATE: truncate_part(flow, part, whole); return;
    case FATE_RESET:
        swallow(flow, part.length);
        shut(flow, CHUNK_RESET);
        return;
    case FATE_HALF_CLOSE:
        pass(flow, part);
        if (whole) shut(flow, CHUNK_END);
        return;
    case FATE_BLACK_HOLE:
        flow->black_hole = flow->rule;
        flow->black_hole_fired = true;
        fate_lose(flow, part.length);
        return;
    default: pass(flow, part);
    }
    if (whole && flow->aside_is_waiting) flow_join_aside(flow);
}

/* --- taking --- */

static void opaque(struct flow *flow, const char *why) {
    flow->opaque = true;
    flow->fate = FATE_OPEN;
    connection_note_opaque(flow->connection, why);
}

/* A stretch of bytes that is no message is dealt with as if it were one. */
static void take_raw(struct flow *flow, struct span part) {
    if (part.length == 0) return;
    if (flow->black_hole) {
        fate_lose(flow, part.length);
        return;
    }
    flow->fate = FATE_PASS;
    flow->rule = flow->shut ? flow->rule : NULL;
    flow->delay_ns = 0;
    flow->ns_per_byte = 0;
    if (flow->shut) flow->fate = FATE_SWALLOW;
    else choose(flow, NULL, part.length);
    carry(flow, part, true);
}

static void head_drop(struct flow *flow) {
    if (!flow->head) return;
    flow->connection->proxy->memory_bytes -= flow->head_room;
    free(flow->head);
    flow->head = NULL;
    flow->head_length = flow->head_room = 0;
}

/* The head of an undecided message waits for the rest of it. */
static void head_keep(struct flow *flow, struct span head) {
    if (head.length > flow->head_room) {
        size_t room = flow->head_room ? flow->head_room : 256;
        while (room < head.length) room *= 2;
        flow->head = realloc(flow->head, room);
        if (!flow->head) abort();
        flow->connection->proxy->memory_bytes += room - flow->head_room;
        flow->head_room = room;
    }
    memcpy(flow->head + flow->head_length, head.bytes + flow->head_length, head.length - flow->head_length);
    flow->head_length = head.length;
}

static void take_part(struct flow *flow, struct span part, bool whole) {
    if (whole && flow->fate == FATE_OPEN && !flow->head && !is_watched(flow)) { /* nearly always */
        count(flow);
        flow_pass(flow, part);
    } else {
        if (flow->fate == FATE_OPEN) decide(flow, part);
        head_drop(flow);
        carry(flow, part, whole);
        if (whole && !flow->counted) count(flow);
        if (whole) flow->fate = FATE_OPEN;
    }
    if (whole && flow->direction == TO_SERVER && flow->connection->ledger.opaque_asked)
        opaque(flow, "a request makes it one that does not carry requests and replies");
}

/* The server's next message answers a request that makes the connection opaque. */
static bool ends_replies(const struct flow *flow) {
    return flow->direction == TO_CLIENT && flow->connection->ledger.opaque_asked && resp_is_between(&flow->scanner) &&
           ledger_is_opaque(&flow->connection->ledger);
}

static bool is_taking(const struct flow *flow) {
    return !flow->opaque && !flow->shut && !flow->black_hole;
}

void fate_take(struct flow *flow, struct span bytes, size_t scanned) {
    size_t start = 0;
    for (size_t at = scanned; at < bytes.length && is_taking(flow);) {
        size_t used;
        if (ends_replies(flow)) {
            opaque(flow, "a request makes it one that does not carry requests and replies");
            break;
        }
        enum resp_result result = resp_scan(&flow->scanner, bytes.bytes + at, bytes.length - at, &used);
        at += used;
        if (result == RESP_BROKEN) {
            opaque(&flow->connection->flows[TO_SERVER], "its bytes are not RESP");
            opaque(&flow->connection->flows[TO_CLIENT], "its bytes are not RESP");
        }
        if (result != RESP_WHOLE) continue;
        take_part(flow, (struct span){bytes.bytes + start, at - start}, true);
        start = at;
    }
    struct span rest = {bytes.bytes + start, bytes.length - start};
    if (rest.length == 0) return;
    if (!is_taking(flow)) {
        head_drop(flow);
        take_raw(flow, rest);
    } else if (flow->fate == FATE_OPEN && rest.length < MESSAGE_HEAD && is_watched(flow)) {
        head_keep(flow, rest);
    } else {
        take_part(flow, rest, false);
    }
}

void fate_take_rest(struct flow *flow) {
    if (!flow->head) return;
    /* The read buffer is nobody's at this moment, and what passes from it is written before it is used again. */
    char *buffer = flow->connection->proxy->buffer;
    size_t length = flow->head_length;
    memcpy(buffer, flow->head, length);
    head_drop(flow);
    flow_pass(flow, (struct span){buffer, length});
}

/* --- black holes --- */

void fate_enter_black_hole(struct flow *flow, struct rule *rule) {
    if (flow->black_hole) return;
    flow->black_hole = rule;
    flow->black_hole_fired = false;
    if (flow->source_ended && !flow->end_written && !flow->shut) flow->end_lost = true;
    size_t length = flow_discard(flow) + flow->head_length;
    head_drop(flow);
    if (length) fate_lose(flow, length);
}

void fate_forget_rule(struct flow *flow, const struct rule *rule, struct rule *other) {
    if (rule->action == RULE_REORDER) {
        if (flow->rule == rule && flow->fate == FATE_LATER) flow->fate = FATE_PASS;
        flow_join_aside(flow);
    }
    if (flow->rule == rule) flow->rule = NULL;
    if (flow->black_hole != rule) return;
    flow->black_hole = other;
    flow->black_hole_fired = false;
    if (other) return;
    if (flow->lost) flow->connection->doom = DOOM_CLOSE;
    else if (flow->end_lost) flow_put_end(flow, CHUNK_END);
}
