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
}

void token_place_free(struct token_place *place, struct limits *limits) {
    limits_free(limits, place->gaps, place->gap_room * sizeof *place->gaps);
}

/* A grant comes before each renewal that stated its token, or a larger one. */
static void renewals_bound(struct token_order *order, const struct timeline *timeline) {
    const struct operation *list = timeline->object->list;
    for (uint32_t each = 0; each < timeline->object->count; each++) {
        bool states = list[each].kind == OPERATION_RENEW && list[each].value != OPERATION_NIL;
        if (!states || timeline_standing(timeline, &list[each]) != STANDS_FIRM) continue;
        uint32_t low = 0, high = order->count; /* the grants below `high` have larger tokens, from some place on */
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (list[order->grants[middle]].value <= list[each].value) low = middle + 1;
            else high = middle;
        }
        while (low-- > 0 && order->deadlines[low] > list[each].end) order->deadlines[low] = list[each].end;
    }
}

bool token_order_begin(struct token_order *order, const struct timeline *timeline, struct linearizable_result *result) {
    const struct operation *list = timeline->object->list;
    const uint32_t *sorted = order->grants + order->all;
    order->count = order->due = 0;
    for (uint32_t each = 0; each < order->all; each++)
        if (timeline_standing(timeline, &list[sorted[each]]) == STANDS_FIRM)
            order->grants[order->count++] = sorted[each];
    uint32_t earliest = UINT32_MAX;
    for (uint32_t each = order->count; each-- > 0;) {
        if (list[order->grants[each]].end < earliest) earliest = list[order->grants[each]].end;
        order->deadlines[each] = earliest;
    }
    renewals_bound(order, timeline);
    for (uint32_t each = 0; each < order->count; each++) {
        uint32_t index = order->grants[each];
        if (list[index].call < order->deadlines[each]) continue;
        uint32_t before = timeline->events[order->deadlines[each]] / 2;
        linearizable_violate(result, index, timeline->prefix,
                             list[before].kind == OPERATION_RENEW
                                 ? "a renewal had stated its token, or a larger one, before it was called"
                                 : "a larger token had been granted before it was called");
        linearizable_block(result, before);
        return false;
    }
    return true;
}

void token_place_add_gap(struct token_place *place, uint32_t end, uint64_t room, struct limits *limits) {
    if (limits_more(limits, place->gaps, place->gap_count, place->gap_room))
        place->gaps[place->gap_count++] = (struct token_gap){.end = end, .room = room};
}

bool token_place_take_gap(struct token_place *place, uint32_t start) {
    for (size_t each = 0; each < place->gap_count; each++) {
        if (place->gaps[each].end <= start || place->gaps[each].room == 0) continue;
        place->gaps[each].room--;
        return true;
    }
    return false;
}

bool token_place_is_as_good(const struct token_place *one, const struct token_place *other) {
    if (one->next != other->next || one->newest > other->newest || one->known > other->known) return false;
    if (one->gap_count != other->gap_count) return false;
    for (size_t each = 0; each < one->gap_count; each++)
        if (one->gaps[each].end != other->gaps[each].end || one->gaps[each].room < other->gaps[each].room) return false;
    return true;
}
