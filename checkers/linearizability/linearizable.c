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

/* --- models --- */

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
    return (kind < OPERATION_READ) == (model != MODEL_REGISTER);
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

/* --- a whole input --- */

static void verdict_doubt(struct linearizability_verdict *verdict, const char *why) {
    if (verdict->status == VERDICT_VIOLATED) return;
    verdict->status = VERDICT_INCONCLUSIVE;
    if (!verdict->reason[0]) snprintf(verdict->reason, sizeof verdict->reason, "%s", why);
}

/* What an input must have before anything is said to hold. */
static void check_assumptions(const struct operation_source *source, enum model model, bool firm,
                              struct linearizability_verdict *verdict) {
    char why[128];
    if (!firm)
        verdict_doubt(verdict, model == MODEL_REGISTER ? "nothing was read or written" : "nobody was granted the lock");
    if (source->dropped || source->torn) {
        snprintf(why, sizeof why, "%llu records are torn, %llu found no room", (unsigned long long)source->torn,
                 (unsigned long long)source->dropped);
        verdict_doubt(verdict, why);
    }
}

/* What shows that an owner holds may be explained by a grant without an answer where owners are named with the answer:
 * it may be anybody's. */
static void doubt_owner(const struct operations *operations, const struct concurrent_object *object,
                        struct linearizable_result *result) {
    const struct operation *shown = &object->list[result->operation];
    bool proof = shown->kind == OPERATION_RELEASE || shown->kind == OPERATION_RENEW;
    if (result->status != VERDICT_VIOLATED || !operations->owners_answered || !proof) return;
    for (size_t each = 0; each < object->count; each++) {
        const struct operation *other = &object->list[each];
        if (!other->nameless || other->outcome != OUTCOME_UNKNOWN || other->call > shown->end) continue;
        result->status = VERDICT_INCONCLUSIVE;
        snprintf(result->fault, sizeof result->fault,
                 "the %s of event %u is of an owner that may have been granted the lock by the acquire of event %u, "
                 "which names none",
                 operation_kind_name((enum operation_kind)shown->kind), shown->called_at, other->called_at);
        return;
    }
}

/* Is there an operation about which something can be said: a grant, or any of a register? */
static bool has_firm(const struct concurrent_object *object, enum model model) {
    for (size_t each = 0; each < object->count; each++) {
        const struct operation *operation = &object->list[each];
        if (operation->outcome == OUTCOME_OK && (model == MODEL_REGISTER || operation->kind == OPERATION_ACQUIRE))
            return true;
    }
    return false;
}

static void add_result(struct linearizability_verdict *verdict, const struct operation_source *source,
                       const struct concurrent_object *object, const struct linearizable_result *result) {
    verdict->operations += object->ok + object->unknown;
    verdict->unknown += object->unknown;
    if (result->configurations > verdict->configurations) verdict->configurations = result->configurations;
    if (result->status == VERDICT_INCONCLUSIVE)
        verdict_doubt(verdict, result->fault[0] ? result->fault : source->limits.exceeded);
    if (result->status != VERDICT_VIOLATED) return;
    verdict->status = VERDICT_VIOLATED;
    verdict->violated++;
    if (verdict->violation_count < EVIDENCE_KEPT)
        verdict->violations[verdict->violation_count++] = (struct linearizability_violation){object, *result};
}

bool linearizability_judge(struct operation_source *source, const struct linearizable_settings *settings,
                           struct linearizability_verdict *verdict) {
    struct linearizable_result result;
    bool firm = false;
    *verdict = (struct linearizability_verdict){.status = VERDICT_HOLDS};
    if (source->fault[0]) verdict_doubt(verdict, source->fault);
    else if (source->limits.exceeded[0]) verdict_doubt(verdict, source->limits.exceeded);
    for (size_t each = 0; each < source->operations.object_count; each++) {
        if (source->fault[0] || source->limits.exceeded[0]) break;
        const struct concurrent_object *object = &source->operations.objects[each];
        linearizable_decide(object, (uint32_t)source->operations.process_count, settings, &source->limits, &result);
        doubt_owner(&source->operations, object, &result);
        if (result.inapplicable) {
            snprintf(verdict->reason, sizeof verdict->reason, "%s", result.fault);
            return false;
        }
        firm |= has_firm(object, settings->model);
        add_result(verdict, source, object, &result);
    }
    if (verdict->status == VERDICT_HOLDS) check_assumptions(source, settings->model, firm, verdict);
    return true;
}
