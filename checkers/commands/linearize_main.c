/* linearize --model MODEL [options] FILE: is the history linearizable? Prints the verdict as one JSON object. FILE is a
 * lockstorm history (binary or JSON Lines), Jepsen EDN or AtlasDB-style JSON, recognised by its first bytes.
 *
 *   --model mutex|owner-mutex|reentrant-mutex|fenced-mutex|semaphore|register
 *   --permits N                                        of a semaphore
 *   --initial N|nil                                    of a register
 *   --release-policy unknown|not-happened|released     how a failed release of a held lock is read
 *   --acquire-timeout unknown|not-happened             how an acquire that timed out is read
 *   --refused-renewal unknown|lost                     how a refused renewal or release is read
 *   --leases                                           a hold may end by itself after it was last confirmed
 *   --memory-limit MIB, --time-limit SECONDS           beyond: inconclusive (default 4096 MiB, 300 s; 0: no limit)
 *   --format any|history|jsonl|edn|atlas               format of the file (default any: by its first bytes)
 *   --write edn|porcupine                              write the operations instead of judging them
 *
 * Exit status: 0 linearizable, 1 not, 2 bad usage or input (with the byte or line), 3 inconclusive. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checkers/formats/operations_read.h"
#include "checkers/formats/operations_write.h"
#include "checkers/formats/text.h"

enum { MEMORY_MIB = 4096, TIME_S = 300 };

/* How operations of ambiguous outcome are read, by enum release_reading, by whether an acquire that timed out never
 * happened, and by whether a refused renewal or release says that the lock was lost. */
static const char *const RELEASE_READING[] = {"unknown", "not-happened", "released", NULL};
static const char *const TIMEOUT_READING[] = {"unknown", "not-happened", NULL};
static const char *const REFUSAL_READING[] = {"unknown", "lost", NULL};

struct linearize_request {
    struct linearizable_settings model;
    struct read_settings reading;
    bool model_given, initial_given, writes;
    enum write_format output;
};

static bool linearize_number(const char *word, double least, double most, double *value) {
    char *end;
    errno = 0;
    *value = strtod(word, &end);
    return errno == 0 && end != word && *end == '\0' && *value >= least && *value <= most;
}

static bool initial(const char *word, struct linearize_request *request) {
    char *end;
    request->initial_given = true;
    request->model.initial = OPERATION_NIL;
    if (strcmp(word, "nil") == 0) return true;
    errno = 0;
    request->model.initial = strtoll(word, &end, 10);
    return errno == 0 && end != word && *end == '\0';
}

static bool linearize_option_take(struct linearize_request *request, int option, const char *word) {
    static const char *const formats[] = {"any", "history", "jsonl", "edn", "atlas", NULL};
    static const char *const outputs[] = {"edn", "porcupine", NULL};
    struct read_settings *reading = &request->reading;
    double value = 0;
    int chosen = 0;
    switch (option) {
    case 'm': return request->model_given = model_find(word, &request->model.model);
    case 'p':
        if (!linearize_number(word, 1, 1e9, &value) || value != (double)(int64_t)value) return false;
        request->model.permits = (int64_t)value;
        return true;
    case 'i': return initial(word, request);
    case 'r':
        reading->policies.failed_release = (enum release_reading)(chosen = text_place(word, RELEASE_READING));
        return chosen >= 0;
    case 't':
        reading->policies.timeout_not_happened = (chosen = text_place(word, TIMEOUT_READING)) == 1;
        return chosen >= 0;
    case 'R': reading->policies.refused_lost = (chosen = text_place(word, REFUSAL_READING)) == 1; return chosen >= 0;
    case 'l': return reading->policies.leases = true;
    case 'M':
        if (!linearize_number(word, 0, 1 << 20, &value)) return false;
        reading->memory_bytes = (uint64_t)(value * (1 << 20));
        return true;
    case 'T':
        if (!linearize_number(word, 0, 1e6, &value)) return false;
        reading->time_ns = (int64_t)(value * 1e9);
        return true;
    case 'f': reading->format = (enum file_format)(chosen = text_place(word, formats)); return chosen >= 0;
    default:
        request->writes = true;
        request->output = (enum write_format)(chosen = text_place(word, outputs));
        return chosen >= 0;
    }
}

static bool linearize_parse(int argc, char **argv, struct linearize_request *request) {
    const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                     {"permits", required_argument, NULL, 'p'},
                                     {"initial", required_argument, NULL, 'i'},
                                     {"release-policy", required_argument, NULL, 'r'},
                                     {"acquire-timeout", required_argument, NULL, 't'},
                                     {"refused-renewal", required_argument, NULL, 'R'},
                                     {"leases", no_argument, NULL, 'l'},
                                     {"memory-limit", required_argument, NULL, 'M'},
                                     {"time-limit", required_argument, NULL, 'T'},
                                     {"format", required_argument, NULL, 'f'},
                                     {"write", required_argument, NULL, 'w'},
                                     {0}};
    int place = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, &place)) != -1;) {
        if (option == '?') return false;
        if (linearize_option_take(request, option, optarg)) continue;
        fprintf(stderr, "--%s: not a usable value: %s\n", options[place].name, optarg);
        return false;
    }
    if (!request->model_given || optind + 1 != argc) {
        fprintf(stderr, "usage: linearize --model ");
        for (int each = 0; each < MODEL_COUNT; each++)
            fprintf(stderr, "%s%s", each ? "|" : "", model_name((enum model)each));
        fprintf(stderr, " [options] FILE\n");
        return false;
    }
    enum model model = request->reading.model = request->model.model;
    request->reading.policies.owned = model_is_owned(model);
    request->reading.policies.nests = model == MODEL_REENTRANT_MUTEX || model == MODEL_SEMAPHORE;
    return true;
}

/* --- the verdict as JSON --- */

/* What was judged, by which model, what came of it, and what it cost. */
struct linearizability_report {
    const struct operation_source *source;
    const struct linearizable_settings *settings;
    const struct linearizability_verdict *verdict;
    double read_s, decide_s;
    int exit; /* status */
};

/* "client-2's acquire (records 12 to 15, token 34)" */
static void describe(const struct operation_source *source, const struct operation *operation, char *text,
                     size_t size) {
    char name[64], detail[64] = "";
    const char *event = source->event_noun;
    enum operation_kind kind = (enum operation_kind)operation->kind;
    if ((kind == OPERATION_ACQUIRE || kind == OPERATION_RENEW) && operation->value != OPERATION_NIL)
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
    const int64_t least_ns = report->source->operations.ttl_least_ns, most_ns = report->source->operations.ttl_most_ns;
    if (report->settings->model != MODEL_REGISTER)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         " (failed releases read as %s, acquires that timed out as %s",
                         RELEASE_READING[policies->failed_release], TIMEOUT_READING[policies->timeout_not_happened]);
    if (report->settings->model != MODEL_REGISTER && policies->refused_lost)
        used += snprintf(text + used, sizeof text - (size_t)used, ", refused renewals and releases as lost");
    if (report->settings->model != MODEL_REGISTER && most_ns)
        used += snprintf(text + used, sizeof text - (size_t)used, "; leases of %lld to %lld ms",
                         (long long)least_ns / CHECK_NS_PER_MS, (long long)most_ns / CHECK_NS_PER_MS);
    if (report->settings->model != MODEL_REGISTER) used += snprintf(text + used, sizeof text - (size_t)used, ")");
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

/* The caller releases it. */
static json_t *render_linearizability(const struct linearizability_report *report) {
    const struct operations *operations = &report->source->operations;
    const struct linearizability_verdict *verdict = report->verdict;
    json_t *policies =
        json_pack("{s:s,s:s,s:s,s:b}", "release", RELEASE_READING[operations->policies.failed_release],
                  "acquire_timeout", TIMEOUT_READING[operations->policies.timeout_not_happened], "refused_renewal",
                  REFUSAL_READING[operations->policies.refused_lost], "leases", operations->policies.leases);
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

/* --- the whole --- */

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Judges what was read, and prints the verdict. */
static int judge_file(struct operations_file *file, const char *path, struct linearize_request *request,
                      double read_s) {
    static const int statuses[] = {EXIT_INCONCLUSIVE, EXIT_HOLDS, EXIT_VIOLATED};
    struct linearizability_verdict verdict;
    double began_s = now_s();
    request->model.leases = file->source.operations.policies.leases;
    if (!request->initial_given) request->model.initial = file->source.initial;
    if (!linearizability_judge(&file->source, &request->model, &verdict)) {
        fprintf(stderr, "%.90s: %s\n", path, verdict.reason);
        return EXIT_BAD;
    }
    const struct linearizability_report report = {.source = &file->source,
                                                  .settings = &request->model,
                                                  .verdict = &verdict,
                                                  .read_s = read_s,
                                                  .decide_s = now_s() - began_s,
                                                  .exit = statuses[verdict.status]};
    json_t *rendered = render_linearizability(&report);
    json_dumpf(rendered, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(rendered);
    return fflush(stdout) == 0 ? report.exit : EXIT_BAD;
}

/* Writes what was read instead. */
static int write_file(const struct operations_file *file, const char *path, enum write_format format) {
    const char *fault = operations_unwritable(&file->source);
    if (fault) {
        fprintf(stderr, "%.100s: %.150s\n", path, fault);
        return EXIT_BAD;
    }
    if (operations_write(&file->source, format, stdout)) return EXIT_SUCCESS;
    fprintf(stderr, "the output could not be written\n");
    return EXIT_BAD;
}

int main(int argc, char **argv) {
    static struct operations_file file;
    struct linearize_request request = {
        .model.permits = 1, .reading = {.memory_bytes = (uint64_t)MEMORY_MIB << 20, .time_ns = TIME_S * 1000000000LL}};
    struct history_error error = {.text = ""};
    int status = EXIT_BAD;
    if (!linearize_parse(argc, argv, &request)) return EXIT_BAD;
    const char *path = argv[optind];
    double began_s = now_s();
    if (!operations_read(&file, path, &request.reading, &error)) fprintf(stderr, "%s\n", error.text);
    else if (request.writes) status = write_file(&file, path, request.output);
    else status = judge_file(&file, path, &request, now_s() - began_s);
    operations_file_end(&file);
    return status;
}
