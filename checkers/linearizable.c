#include "checkers/linearizable.h"

#include <stdio.h>
#include <string.h>

static const char *const NAMES[MODEL_COUNT] = {"mutex",        "owner-mutex", "reentrant-mutex",
                                               "fenced-mutex", "semaphore",   "register"};

bool model_find(const char *name, enum model *model) {
    for (int each = 0; each < MODEL_COUNT; each++) {
        if (strcmp(name, NAMES[each]) != 0) continue;
        *model = (enum model)each;
        return true;
    }
    return false;
}

const char *model_name(enum model model) {
    return NAMES[model];
}

bool model_knows(enum model model, enum operation_kind kind) {
    bool lock = kind == OPERATION_ACQUIRE || kind == OPERATION_RELEASE || kind == OPERATION_RENEW;
    return lock == (model != MODEL_REGISTER);
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

static bool timeline_make(struct timeline *timeline, const struct object *object, struct limits *limits) {
    *timeline = (struct timeline){.object = object, .length = object->clock + 2, .prefix = UINT32_MAX - 1};
    timeline->events = limits_resize(limits, NULL, 0, timeline->length * sizeof *timeline->events);
    if (!timeline->events) return false;
    memset(timeline->events, 0xff, timeline->length * sizeof *timeline->events);
    for (uint32_t each = 0; each < object->count; each++) {
        const struct operation *operation = &object->list[each];
        if (operation->outcome == OUTCOME_REFUSED) continue;
        timeline->events[operation->call] = each * 2;
        if (operation->outcome == OUTCOME_OK) timeline->events[operation->end] = each * 2 + 1;
    }
    return true;
}

/* What a model needs of each operation. */
static bool is_fit(const struct object *object, enum model model, struct linearizable_result *result) {
    for (uint32_t each = 0; each < object->count; each++) {
        const struct operation *operation = &object->list[each];
        if (!model_knows(model, (enum operation_kind)operation->kind)) {
            snprintf(result->fault, sizeof result->fault, "event %u: %s is no operation of %s %s", operation->called_at,
                     operation_kind_name((enum operation_kind)operation->kind), model == MODEL_OWNER_MUTEX ? "an" : "a",
                     NAMES[model]);
            return false;
        }
        bool grant = operation->kind == OPERATION_ACQUIRE && operation->outcome == OUTCOME_OK;
        if (model == MODEL_FENCED_MUTEX && grant && operation->value == OPERATION_NIL) {
            snprintf(result->fault, sizeof result->fault, "event %u: a grant without a token, which a %s needs",
                     operation->returned_at, NAMES[model]);
            return false;
        }
    }
    return true;
}

void linearizable_decide(const struct object *object, uint32_t processes, const struct linearizable_settings *settings,
                         struct limits *limits, struct linearizable_result *result) {
    struct timeline timeline = {0};
    *result = (struct linearizable_result){.status = VERDICT_INCONCLUSIVE, .configurations = 1};
    result->unfit = !is_fit(object, settings->model, result);
    if (result->unfit || !timeline_make(&timeline, object, limits)) return;
    result->status = VERDICT_HOLDS;
    if (settings->model == MODEL_REGISTER) linearizable_register(&timeline, settings->initial, limits, result);
    else if (settings->model == MODEL_MUTEX || settings->model == MODEL_SEMAPHORE)
        linearizable_count(&timeline, settings->model == MODEL_MUTEX ? 1 : settings->permits, limits, result);
    else linearizable_owner(&timeline, processes, settings, limits, result);
    if (limits->exceeded[0]) result->status = VERDICT_INCONCLUSIVE;
    limits_free(limits, timeline.events, timeline.length * sizeof *timeline.events);
}
