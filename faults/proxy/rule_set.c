#include "faults/proxy/rule_set.h"

#include <stdlib.h>
#include <string.h>

#include "faults/proxy/disposition.h"
#include "faults/proxy/link.h"

struct rule *rule_set_find(const struct proxy *proxy, struct span name) {
    for (struct rule *rule = proxy->rules; rule; rule = rule->next)
        if (span_is(name, rule->name)) return rule;
    return NULL;
}

static void refresh(struct proxy *proxy) {
    for (struct proxy_link *link = proxy->links; link; link = link->next) link_refresh(link);
}

static void enter_black_holes(struct proxy *proxy, struct rule *rule) {
    for (struct proxy_link *link = proxy->links; link; link = link->next)
        for (int each = 0; each < DIRECTIONS; each++) {
            if (!rule_concerns(rule, link->name, (enum direction)each)) continue;
            for (struct proxy_connection *next, *connection = link->connections; connection; connection = next) {
                next = connection->next;
                disposition_enter_black_hole(&connection->flows[each], rule);
                connection_review(connection);
            }
        }
}

void rule_set_add(struct proxy *proxy, struct rule *rule) {
    struct rule **place = &proxy->rules;
    while (*place) {
        struct rule *each = *place;
        if (strcmp(each->name, rule->name) != 0) {
            place = &each->next;
            continue;
        }
        rule->text = each->text;
        *place = each->next;
        rule_free(each);
    }
    *place = rule;
    rule->id = ++proxy->rule_ids;
    rule->random = random_split(rule->has_seed ? rule->seed : proxy->actor.page->seed, rule->has_seed ? 0 : rule->id);
    if (!rule->text) rule->text = proxy_text(proxy, rule->name);
    refresh(proxy);
    if (rule->is_blanket) enter_black_holes(proxy, rule);
}

static struct rule *other_blanket(const struct proxy_link *link, int direction) {
    for (size_t each = 0; each < link->rules[direction].count; each++)
        if (link->rules[direction].rules[each]->is_blanket) return link->rules[direction].rules[each];
    return NULL;
}

static void rule_set_forget(struct proxy_connection *connection, const struct rule *rule) {
    for (int each = 0; each < DIRECTIONS; each++)
        disposition_forget_rule(&connection->flows[each], rule, other_blanket(connection->link, each));
    for (int each = 0; each < DIRECTIONS; each++) flow_flush(&connection->flows[each]);
    connection_review(connection);
}

void rule_set_remove(struct proxy *proxy, struct rule *rule) {
    rule->active = false;
    refresh(proxy);
    rule_set_release(proxy, rule, SIZE_MAX);
    for (struct proxy_link *link = proxy->links; link; link = link->next)
        for (struct proxy_connection *next, *each = link->connections; each; each = next) {
            next = each->next;
            rule_set_forget(each, rule);
        }
}

size_t rule_set_release(struct proxy *proxy, struct rule *rule, size_t most) {
    size_t count = 0;
    for (; rule->held_first && count < most; count++) {
        struct chunk *chunk = rule->held_first;
        struct flow *flow = chunk->flow;
        chunk_release(chunk);
        rule->released++;
        actor_append(&proxy->actor, (struct history_record){.kind = HISTORY_RELEASED,
                                                            .name = rule->text,
                                                            .value = (int64_t)chunk->message_bytes,
                                                            .extra = (int64_t)flow->connection->link->text,
                                                            .op = (uint32_t)rule->released});
        flow_flush(flow);
        connection_review(flow->connection);
    }
    return count;
}

void rule_set_close(struct proxy *proxy) {
    while (proxy->rules) {
        struct rule *rule = proxy->rules;
        proxy->rules = rule->next;
        rule_free(rule);
    }
}
