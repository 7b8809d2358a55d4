/* linearize --model MODEL [options] FILE: is the history linearizable? Prints the verdict as one JSON object. FILE is a
 * lockstorm history (binary or JSON Lines), Jepsen EDN or AtlasDB-style JSON, recognised by its first bytes.
 *
 *   --model mutex|owner-mutex|reentrant-mutex|fenced-mutex|semaphore|register
 *   --permits N                                        of a semaphore
 *   --initial N|nil                                    of a register
 *   --release-policy unknown|not-happened|released     how a failed release of a held lock is read
 *   --acquire-timeout unknown|not-happened             how an acquire that timed out is read
 *   --leases                                           a hold may end by itself after it was last confirmed
 *   --memory-limit MIB, --time-limit SECONDS           beyond: inconclusive (default 4096 MiB, 300 s; 0: no limit)
 *   --format any|history|jsonl|edn|atlas               format of the file (default any: by its first bytes)
 *   --write edn|porcupine                              write the operations instead of judging them
 *
 * Exit status: 0 linearizable, 1 not, 2 bad usage or input (with the byte or line), 3 inconclusive. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checkers/commands/exit_status.h"
#include "checkers/commands/render_linearizability.h"
#include "checkers/formats/operations_read.h"
#include "checkers/formats/operations_write.h"
#include "checkers/linearizability/models.h"

enum { MEMORY_MIB = 4096, TIME_S = 300 };

struct linearize_request {
    struct linearizable_settings model;
    struct read_settings reading;
    bool model_given, initial_given, writes;
    enum write_format output;
};

/* The index of a word in a list, -1: it is not there. */
static int which(const char *word, const char *const *words) {
    for (int each = 0; words[each]; each++)
        if (strcmp(word, words[each]) == 0) return each;
    return -1;
}

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
        reading->policies.failed_release = (enum release_reading)(chosen = which(word, RELEASE_READING));
        return chosen >= 0;
    case 't': reading->policies.timeout_not_happened = (chosen = which(word, TIMEOUT_READING)) == 1; return chosen >= 0;
    case 'l': return reading->policies.leases = true;
    case 'M':
        if (!linearize_number(word, 0, 1 << 20, &value)) return false;
        reading->memory_bytes = (uint64_t)(value * (1 << 20));
        return true;
    case 'T':
        if (!linearize_number(word, 0, 1e6, &value)) return false;
        reading->time_ns = (int64_t)(value * 1e9);
        return true;
    case 'f': reading->format = (enum file_format)(chosen = which(word, formats)); return chosen >= 0;
    default:
        request->writes = true;
        request->output = (enum write_format)(chosen = which(word, outputs));
        return chosen >= 0;
    }
}

static bool linearize_parse(int argc, char **argv, struct linearize_request *request) {
    const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                     {"permits", required_argument, NULL, 'p'},
                                     {"initial", required_argument, NULL, 'i'},
                                     {"release-policy", required_argument, NULL, 'r'},
                                     {"acquire-timeout", required_argument, NULL, 't'},
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
