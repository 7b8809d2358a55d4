#include "checkers/commands/render_linearizability.h"

#include <stdio.h>
#include <string.h>

#include "checkers/linearizability/models.h"

const char *const RELEASE_READING[] = {"unknown", "not-happened", "released", NULL};
const char *const TIMEOUT_READING[] = {"unknown", "not-happened", NULL};

/* --- evidence --- */

/* "client-2's acquire (records 12 to 15, token 34)" */
static void describe(const struct operation_source *source, const struct operation *operation, char *text,
                     size_t size) {
    char name[64], detail[64] = "";
    const char *event = source->event_noun;
    enum operation_kind kind = (enum operation_kind)operation->kind;
    if (kind == OPERATION_ACQUIRE && operation->value != OPERATION_NIL)
        snprintf(detail, sizeof detail, ", token %lld", (long long)operation->value);
    else if (kind == OPERATION_CAS)
        snprintf(detail, sizeof detail, ", from %lld to %lld", (long long)operation->from, (long long)operation->value);
    else if (kind >= OPERATION_READ && operation->value != OPERATION_NIL)
        snprintf(detail, sizeof detail, ", value %lld", (long long)operation->value);
    source->process_name(source, operation->process, name, sizeof name);
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

static json_t *violation_json(const struct operation_source *source,
                              const struct linearizability_violation *violation) {
    char text[1024], words[192];
    const struct concurrent_object *object = violation->object;
    const struct linearizable_result *result = &violation->result;
    const struct operation *operation = &object->list[result->operation];
    json_t *records = json_array(), *blockers = json_array();
    describe(source, operation, words, sizeof words);
    size_t used = (size_t)snprintf(
        text, sizeof text, "%s%s%sno order explains what had happened by %s %u: %s cannot be placed: %s",
        object->name ? "on " : "", object->name ? object->name : "", object->name ? ", " : "", source->event_noun,
        operation->returned_at, words, result->why);
    for (int each = 0; each < result->blocker_count; each++) {
        const struct operation *blocker = &object->list[result->blockers[each]];
        describe(source, blocker, words, sizeof words);
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", each ? ", " : "; in its way: ", words);
        records_add(records, blocker);
        json_array_append_new(blockers, json_string(words));
    }
    records_add(records, operation);
    describe(source, operation, words, sizeof words);
    return json_pack("{s:s,s:o,s:s,s:o,s:I}", "text", text, "records", records, "operation", words, "in_the_way",
                     blockers, "prefix", (json_int_t)operation->returned_at);
}

/* --- the whole --- */

static json_t *verdict_json(const struct linearizability_report *report) {
    const struct linearizability_verdict *verdict = report->verdict;
    json_t *evidence = json_array();
    for (int each = 0; each < verdict->violation_count; each++)
        json_array_append_new(evidence, violation_json(report->source, &verdict->violations[each]));
    json_t *rendered = json_pack("{s:s,s:I,s:o}", "status", verdict_status_name(verdict->status), "count",
                                 (json_int_t)verdict->violated, "evidence", evidence);
    if (verdict->status == VERDICT_INCONCLUSIVE) json_object_set_new(rendered, "reason", json_string(verdict->reason));
    return json_pack("{s:o}", "linearizable", rendered);
}

static json_t *linearizability_sentence_json(const struct linearizability_report *report) {
    char text[512];
    const struct policies *policies = &report->source->operations.policies;
    const char *model = model_name(report->settings->model);
    int used = snprintf(text, sizeof text, "Linearizable as %s %s: %s", strchr("aeiou", model[0]) ? "an" : "a", model,
                        verdict_status_name(report->verdict->status));
    if (report->settings->model != MODEL_REGISTER)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         " (failed releases read as %s, acquires that timed out as %s)",
                         RELEASE_READING[policies->failed_release], TIMEOUT_READING[policies->timeout_not_happened]);
    if (report->verdict->status == VERDICT_INCONCLUSIVE)
        snprintf(text + used, sizeof text - (size_t)used, " - %s", report->verdict->reason);
    return json_string(text);
}

/* The most memory that this process had in use, with all that is around what limits count; 0: /proc does not say. */
static json_int_t resident_bytes(void) {
    char line[128];
    long long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %lld kB", &kib) == 1) break;
    if (file) fclose(file);
    return (json_int_t)kib * 1024;
}

json_t *render_linearizability(const struct linearizability_report *report) {
    const struct operations *operations = &report->source->operations;
    const struct linearizability_verdict *verdict = report->verdict;
    json_t *policies =
        json_pack("{s:s,s:s,s:b}", "release", RELEASE_READING[operations->policies.failed_release], "acquire_timeout",
                  TIMEOUT_READING[operations->policies.timeout_not_happened], "leases", operations->policies.leases);
    json_t *rendered = json_pack("{s:o,s:o,s:[s],s:s,s:o}", "verdict", verdict_json(report), "sentence",
                                 linearizability_sentence_json(report), "required", "linearizable", "model",
                                 model_name(report->settings->model), "policies", policies);
    if (report->settings->model == MODEL_SEMAPHORE)
        json_object_set_new(rendered, "permits", json_integer(report->settings->permits));
    json_object_set_new(rendered, "events", json_integer((json_int_t)operations->events));
    json_object_set_new(rendered, "operations", json_integer((json_int_t)verdict->operations));
    json_object_set_new(rendered, "unknown", json_integer((json_int_t)verdict->unknown));
    json_object_set_new(rendered, "objects", json_integer((json_int_t)operations->object_count));
    json_object_set_new(rendered, "configurations", json_integer((json_int_t)verdict->configurations));
    json_object_set_new(rendered, "memory_bytes", json_integer((json_int_t)report->source->limits.peak));
    json_object_set_new(rendered, "resident_bytes", json_integer(resident_bytes()));
    json_object_set_new(rendered, "read_s", json_real(report->read_s));
    json_object_set_new(rendered, "decide_s", json_real(report->decide_s));
    json_object_set_new(rendered, "exit", json_integer(report->exit));
    return rendered;
}
