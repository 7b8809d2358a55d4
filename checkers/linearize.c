#include "checkers/linearize.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checkers/source.h"

static const char *const STATUS[] = {"inconclusive", "holds", "violated"};
static const char *const RELEASE_READINGS[] = {"unknown", "not-happened", "released"};

/* All objects together. */
struct judged {
    enum verdict_status status;
    char reason[256];
    json_t *evidence;
    uint64_t violated, operations, firm, unknown, configurations;
    double read_s, decide_s;
};

/* --- words --- */

/* "client-2's acquire (records 12 to 15, token 34)" */
static void operation_say(const struct source *source, const struct operation *operation, char *text, size_t size) {
    char name[64], detail[64] = "", *said = detail;
    const char *event = source_event(source);
    enum operation_kind kind = (enum operation_kind)operation->kind;
    if (kind == OPERATION_ACQUIRE && operation->value != OPERATION_NIL)
        snprintf(said, sizeof detail, ", token %lld", (long long)operation->value);
    else if (kind == OPERATION_CAS)
        snprintf(said, sizeof detail, ", from %lld to %lld", (long long)operation->from, (long long)operation->value);
    else if (kind >= OPERATION_READ && operation->value != OPERATION_NIL)
        snprintf(said, sizeof detail, ", value %lld", (long long)operation->value);
    source_process(source, operation->process, name, sizeof name);
    if (operation->returned_at != OPERATION_OPEN)
        snprintf(text, size, "%s's %s (%ss %u to %u%s)", name, operation_kind_name(kind), event, operation->called_at,
                 operation->returned_at, detail);
    else
        snprintf(text, size, "%s's %s (from %s %u on%s)", name, operation_kind_name(kind), event, operation->called_at,
                 detail);
}

static void records_add(json_t *records, const struct operation *operation) {
    json_array_append_new(records, json_integer(operation->called_at));
    if (operation->returned_at != OPERATION_OPEN) json_array_append_new(records, json_integer(operation->returned_at));
}

static json_t *evidence_json(const struct source *source, const struct object *object,
                             const struct linearizable_result *result) {
    char text[1024], words[192];
    const struct operation *operation = &object->list[result->operation];
    json_t *records = json_array(), *blockers = json_array();
    operation_say(source, operation, words, sizeof words);
    size_t used = (size_t)snprintf(
        text, sizeof text, "%s%s%sno order explains what had happened by %s %u: %s cannot be placed: %s",
        object->name ? "on " : "", object->name ? object->name : "", object->name ? ", " : "", source_event(source),
        operation->returned_at, words, result->why);
    for (int each = 0; each < result->blocker_count; each++) {
        const struct operation *blocker = &object->list[result->blockers[each]];
        operation_say(source, blocker, words, sizeof words);
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", each ? ", " : "; in its way: ", words);
        records_add(records, blocker);
        json_array_append_new(blockers, json_string(words));
    }
    records_add(records, operation);
    operation_say(source, operation, words, sizeof words);
    return json_pack("{s:s,s:o,s:s,s:o,s:I}", "text", text, "records", records, "operation", words, "in_the_way",
                     blockers, "prefix", (json_int_t)operation->returned_at);
}

/* --- judging --- */

static void doubt(struct judged *judged, const char *why) {
    if (judged->status == VERDICT_VIOLATED) return;
    judged->status = VERDICT_INCONCLUSIVE;
    if (!judged->reason[0]) snprintf(judged->reason, sizeof judged->reason, "%s", why);
}

/* What makes a history unfit to say that it holds. */
static void assumptions_check(const struct source *source, const struct linearize_settings *settings,
                              struct judged *judged) {
    char why[128];
    if (judged->firm == 0)
        doubt(judged,
              settings->model.model == MODEL_REGISTER ? "nothing was read or written" : "nobody was granted the lock");
    if (source->recorded.dropped || source->recorded.torn) {
        snprintf(why, sizeof why, "%llu records are torn, %llu found no room",
                 (unsigned long long)source->recorded.torn, (unsigned long long)source->recorded.dropped);
        doubt(judged, why);
    }
}

static uint64_t firm_count(const struct object *object, enum model model) {
    uint64_t count = 0;
    for (size_t each = 0; each < object->count; each++) {
        const struct operation *operation = &object->list[each];
        count += operation->outcome == OUTCOME_OK && (model == MODEL_REGISTER || operation->kind == OPERATION_ACQUIRE);
    }
    return count;
}

/* False: an object is not what the model is about, and *error says why. */
static bool judge(struct source *source, const char *path, const struct linearize_settings *settings,
                  struct judged *judged, struct history_error *error) {
    struct linearizable_settings model = settings->model;
    struct linearizable_result result;
    bool own = source->form == LINEARIZE_RECORDED || source->form == LINEARIZE_JSON_LINES;
    if (!settings->initial_given) model.initial = own ? 0 : OPERATION_NIL;
    judged->status = VERDICT_HOLDS;
    if (source->recorded.fault[0]) doubt(judged, source->recorded.fault);
    else if (source->limits.exceeded[0]) doubt(judged, source->limits.exceeded);
    for (size_t each = 0; each < source->operations.object_count; each++) {
        if (source->recorded.fault[0] || source->limits.exceeded[0]) break;
        struct object *object = &source->operations.objects[each];
        linearizable_decide(object, (uint32_t)source->operations.process_count, &model, &source->limits, &result);
        if (result.unfit) return snprintf(error->text, sizeof error->text, "%.90s: %s", path, result.fault), false;
        judged->operations += object->ok + object->unknown;
        judged->unknown += object->unknown;
        judged->firm += firm_count(object, model.model);
        if (result.configurations > judged->configurations) judged->configurations = result.configurations;
        if (result.status == VERDICT_INCONCLUSIVE)
            doubt(judged, result.fault[0] ? result.fault : source->limits.exceeded);
        if (result.status != VERDICT_VIOLATED) continue;
        judged->status = VERDICT_VIOLATED;
        judged->violated++;
        if (json_array_size(judged->evidence) < EVIDENCE_KEPT)
            json_array_append_new(judged->evidence, evidence_json(source, object, &result));
    }
    if (judged->status == VERDICT_HOLDS) assumptions_check(source, settings, judged);
    return true;
}

static json_t *verdict_json(const struct judged *judged) {
    json_t *verdict = json_pack("{s:s,s:I,s:O}", "status", STATUS[judged->status], "count",
                                (json_int_t)judged->violated, "evidence", judged->evidence);
    if (judged->status == VERDICT_INCONCLUSIVE) json_object_set_new(verdict, "reason", json_string(judged->reason));
    return json_pack("{s:o}", "linearizable", verdict);
}

static json_t *sentence_json(const struct linearize_settings *settings, const struct judged *judged) {
    char text[512];
    const char *model = model_name(settings->model.model);
    int used = snprintf(text, sizeof text, "Linearizable as %s %s: %s", strchr("aeiou", model[0]) ? "an" : "a", model,
                        STATUS[judged->status]);
    if (settings->model.model != MODEL_REGISTER)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         " (failed releases read as %s, acquires that timed out as %s)",
                         RELEASE_READINGS[settings->policies.failed_release],
                         settings->policies.timeout_not_happened ? "not-happened" : "unknown");
    if (judged->status == VERDICT_INCONCLUSIVE)
        snprintf(text + used, sizeof text - (size_t)used, " - %s", judged->reason);
    return json_string(text);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The most memory that this process had in use, with all that is around what limits count; 0: nobody says. */
static json_int_t resident_bytes(void) {
    char line[128];
    long long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %lld kB", &kib) == 1) break;
    if (file) fclose(file);
    return (json_int_t)kib * 1024;
}

static json_t *say(const struct source *source, const struct linearize_settings *settings, const struct judged *judged,
                   int status) {
    json_t *policies =
        json_pack("{s:s,s:s,s:b}", "release", RELEASE_READINGS[settings->policies.failed_release], "acquire_timeout",
                  settings->policies.timeout_not_happened ? "not-happened" : "unknown", "leases",
                  source->operations.policies.leases);
    json_t *said = json_pack("{s:o,s:o,s:[s],s:s,s:o}", "verdict", verdict_json(judged), "sentence",
                             sentence_json(settings, judged), "required", "linearizable", "model",
                             model_name(settings->model.model), "policies", policies);
    if (settings->model.model == MODEL_SEMAPHORE)
        json_object_set_new(said, "permits", json_integer(settings->model.permits));
    json_object_set_new(said, "events", json_integer((json_int_t)source->operations.events));
    json_object_set_new(said, "operations", json_integer((json_int_t)judged->operations));
    json_object_set_new(said, "unknown", json_integer((json_int_t)judged->unknown));
    json_object_set_new(said, "objects", json_integer((json_int_t)source->operations.object_count));
    json_object_set_new(said, "configurations", json_integer((json_int_t)judged->configurations));
    json_object_set_new(said, "memory_bytes", json_integer((json_int_t)source->limits.peak));
    json_object_set_new(said, "resident_bytes", json_integer(resident_bytes()));
    json_object_set_new(said, "read_s", json_real(judged->read_s));
    json_object_set_new(said, "decide_s", json_real(judged->decide_s));
    json_object_set_new(said, "exit", json_integer(status));
    return said;
}

int linearize_file(const char *path, const struct linearize_settings *settings, json_t **said,
                   struct history_error *error) {
    struct source source;
    struct judged judged = {.status = VERDICT_INCONCLUSIVE, .evidence = json_array()};
    static const int statuses[] = {LINEARIZE_INCONCLUSIVE, LINEARIZE_HOLDS, LINEARIZE_VIOLATED};
    int status = LINEARIZE_BAD;
    *said = NULL;
    double began_s = now_s();
    bool good = source_read(&source, path, settings, error);
    judged.read_s = now_s() - began_s;
    good = good && judge(&source, path, settings, &judged, error);
    judged.decide_s = now_s() - began_s - judged.read_s;
    if (good) {
        status = statuses[judged.status];
        *said = say(&source, settings, &judged, status);
    }
    json_decref(judged.evidence);
    source_end(&source);
    return status;
}
