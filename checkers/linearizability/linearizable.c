#include "checkers/linearizability/linearizable.h"

#include <stdio.h>
#include <string.h>

bool timeline_begin(struct timeline *timeline, const struct concurrent_object *object, uint32_t processes,
                    struct limits *limits) {
    uint32_t length = object->clock + 2;
    *timeline = (struct timeline){.object = object, .processes = processes, .prefix = UINT32_MAX - 1};
    timeline->events = limits_resize(limits, NULL, 0, length * sizeof *timeline->events);
    if (!timeline->events) return false;
    timeline->length = length;
    memset(timeline->events, 0xff, length * sizeof *timeline->events);
    for (uint32_t each = 0; each < object->count; each++) {
        const struct operation *operation = &object->list[each];
        if (operation->outcome == OUTCOME_REFUSED) continue;
        timeline->events[operation->call] = each * 2;
        if (operation->outcome == OUTCOME_OK) timeline->events[operation->end] = each * 2 + 1;
    }
    return true;
}

void timeline_end(struct timeline *timeline, struct limits *limits) {
    limits_free(limits, timeline->events, timeline->length * sizeof *timeline->events);
}

void linearizable_violate(struct linearizable_result *result, uint32_t operation, uint32_t position, const char *why) {
    result->status = VERDICT_VIOLATED;
    result->operation = operation;
    result->prefix = position;
    snprintf(result->why, sizeof result->why, "%s", why);
}

void linearizable_block(struct linearizable_result *result, uint32_t operation) {
    for (int each = 0; each < result->blocker_count; each++)
        if (result->blockers[each] == operation) return;
    if (result->blocker_count < BLOCKERS_KEPT) result->blockers[result->blocker_count++] = operation;
}
