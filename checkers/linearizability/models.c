#include "checkers/linearizability/models.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    linearizable_algorithm *decide;
} MODELS[MODEL_COUNT] = {
    [MODEL_MUTEX] = {"mutex", linearizable_count},
    [MODEL_OWNER_MUTEX] = {"owner-mutex", linearizable_owner},
    [MODEL_REENTRANT_MUTEX] = {"reentrant-mutex", linearizable_owner},
    [MODEL_FENCED_MUTEX] = {"fenced-mutex", linearizable_owner},
    [MODEL_SEMAPHORE] = {"semaphore", linearizable_count},
    [MODEL_REGISTER] = {"register", linearizable_register},
};

bool model_find(const char *name, enum model *model) {
    for (int each = 0; each < MODEL_COUNT; each++) {
        if (strcmp(name, MODELS[each].name) != 0) continue;
        *model = (enum model)each;
        return true;
    }
    return false;
}

const char *model_name(enum model model) {
    return MODELS[model].name;
}

bool model_is_owned(enum model model) {
    return MODELS[model].decide == linearizable_owner;
}

bool model_knows(enum model model, enum operation_kind kind) {
    bool lock = kind == OPERATION_ACQUIRE || kind == OPERATION_RELEASE || kind == OPERATION_RENEW;
    return lock == (model != MODEL_REGISTER);
}

/* What a model needs of each operation. */
static bool is_applicable(const struct concurrent_object *object, enum model model,
                          struct linearizable_result *result) {
    for (uint32_t each = 0; each < object->count; each++) {
        const struct operation *operation = &object->list[each];
        if (!model_knows(model, (enum operation_kind)operation->kind)) {
            snprintf(result->fault, sizeof result->fault, "event %u: %s is no operation of %s %s", operation->called_at,
                     operation_kind_name((enum operation_kind)operation->kind), model == MODEL_OWNER_MUTEX ? "an" : "a",
                     model_name(model));
            return false;
        }
        bool grant = operation->kind == OPERATION_ACQUIRE && operation->outcome == OUTCOME_OK;
        if (model == MODEL_FENCED_MUTEX && grant && operation->value == OPERATION_NIL) {
            snprintf(result->fault, sizeof result->fault, "event %u: a grant without a token, which a %s needs",
                     operation->returned_at, model_name(model));
            return false;
        }
    }
    return true;
}

void linearizable_decide(const struct concurrent_object *object, uint32_t processes,
                         const struct linearizable_settings *settings, struct limits *limits,
                         struct linearizable_result *result) {
    struct timeline timeline;
    *result = (struct linearizable_result){.status = VERDICT_INCONCLUSIVE, .configurations = 1};
    result->inapplicable = !is_applicable(object, settings->model, result);
    if (result->inapplicable) return;
    if (timeline_begin(&timeline, object, processes, limits)) {
        result->status = VERDICT_HOLDS;
        MODELS[settings->model].decide(&timeline, settings, limits, result);
        if (limits->exceeded[0]) result->status = VERDICT_INCONCLUSIVE;
    }
    timeline_end(&timeline, limits);
}
