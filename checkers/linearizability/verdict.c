#include "checkers/linearizability/verdict.h"

#include <stdio.h>

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
