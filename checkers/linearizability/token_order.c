#include "checkers/linearizability/token_order.h"

#include <stdlib.h>

static const struct operation *sort_list; /* qsort has no room for it */

static int by_token(const void *left, const void *right) {
    const struct operation *one = &sort_list[*(const uint32_t *)left], *two = &sort_list[*(const uint32_t *)right];
    if (one->value != two->value) return one->value < two->value ? -1 : 1;
    return one->end < two->end ? -1 : one->end > two->end;
}

bool token_order_make(struct token_order *order, const struct timeline *timeline, struct limits *limits) {
    const struct concurrent_object *object = timeline->object;
    for (uint32_t each = 0; each < object->count; each++)
        order->all += object->list[each].kind == OPERATION_ACQUIRE && object->list[each].outcome == OUTCOME_OK;
    order->grants = limits_numbers(limits, 2 * (size_t)order->all);
    order->deadlines = limits_numbers(limits, order->all);
    if (!order->grants || !order->deadlines) return false;
    uint32_t *sorted = order->grants + order->all;
    for (uint32_t each = 0; each < object->count; each++)
        if (object->list[each].kind == OPERATION_ACQUIRE && object->list[each].outcome == OUTCOME_OK) *sorted++ = each;
    sort_list = object->list;
    qsort(order->grants + order->all, order->all, sizeof *order->grants, by_token);
    return true;
}

void token_order_free(struct token_order *order, struct limits *limits) {
    limits_numbers_free(limits, order->grants, 2 * (size_t)order->all);
    limits_numbers_free(limits, order->deadlines, order->all);
    limits_free(limits, order->gaps, order->gap_room * sizeof *order->gaps);
}

bool token_order_begin(struct token_order *order, const struct timeline *timeline, struct linearizable_result *result) {
    const struct operation *list = timeline->object->list;
    const uint32_t *sorted = order->grants + order->all;
    order->count = order->due = order->next = 0;
    order->newest = OPERATION_NIL;
    order->gap_count = 0;
    for (uint32_t each = 0; each < order->all; each++)
        if (timeline_standing(timeline, &list[sorted[each]]) == STANDS_FIRM)
            order->grants[order->count++] = sorted[each];
    uint32_t earliest = UINT32_MAX;
    for (uint32_t each = order->count; each-- > 0;) {
        if (list[order->grants[each]].end < earliest) earliest = list[order->grants[each]].end;
        order->deadlines[each] = earliest;
    }
    for (uint32_t each = 0; each < order->count; each++) {
        uint32_t index = order->grants[each];
        if (list[index].call < order->deadlines[each]) continue;
        linearizable_violate(result, index, timeline->prefix, "a larger token had been granted before it was called");
        for (uint32_t other = each; other < order->count; other++)
            if (list[order->grants[other]].end == order->deadlines[each])
                linearizable_block(result, order->grants[other]);
        return false;
    }
    return true;
}

bool token_order_take_gap(struct token_order *order, uint32_t start) {
    for (size_t each = 0; each < order->gap_count; each++) {
        if (order->gaps[each].end <= start || order->gaps[each].room == 0) continue;
        order->gaps[each].room--;
        return true;
    }
    return false;
}
