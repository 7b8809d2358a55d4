/* linearize --model MODEL [options] FILE: is the history linearizable? Prints the verdict as one JSON object. FILE is a
 * lockstorm history (binary or JSON Lines), Jepsen EDN or AtlasDB-style JSON; what it is, its first bytes say.
 *
 *   --model mutex|owner-mutex|reentrant-mutex|fenced-mutex|semaphore|register
 *   --permits N                                        of a semaphore
 *   --initial N|nil                                    of a register
 *   --release-policy unknown|not-happened|released     how a failed release of a held lock is read
 *   --acquire-timeout unknown|not-happened             how an acquire that timed out is read
 *   --leases                                           a hold may end by itself once it is not confirmed any more
 *   --memory-limit MIB, --time-limit SECONDS           past them: inconclusive (4096 MiB, 300 s; 0: none)
 *   --format any|history|jsonl|edn|atlas               what the file is
 *   --write edn|porcupine                              write the operations instead of judging them
 *
 * Exit status: 0 linearizable, 1 not, 2 bad usage or input (with the byte or line), 3 inconclusive. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/linearize.h"

enum { MEMORY_MIB = 4096, TIME_S = 300 };

struct arguments {
    struct linearize_settings settings;
    bool model_given, writes;
    enum linearize_output output;
};

/* Which of the words, -1: none. */
static int which(const char *word, const char *const *words) {
    for (int each = 0; words[each]; each++)
        if (strcmp(word, words[each]) == 0) return each;
    return -1;
}

static bool number(const char *word, double least, double most, double *value) {
    char *end;
    errno = 0;
    *value = strtod(word, &end);
    return errno == 0 && end != word && *end == '\0' && *value >= least && *value <= most;
}

static bool initial(const char *word, struct linearize_settings *settings) {
    char *end;
    settings->initial_given = true;
    settings->model.initial = OPERATION_NIL;
    if (strcmp(word, "nil") == 0) return true;
    errno = 0;
    settings->model.initial = strtoll(word, &end, 10);
    return errno == 0 && end != word && *end == '\0';
}

static bool option_take(struct arguments *arguments, int option, const char *word) {
    static const char *const releases[] = {"unknown", "not-happened", "released", NULL};
    static const char *const timeouts[] = {"unknown", "not-happened", NULL};
    static const char *const forms[] = {"any", "history", "jsonl", "edn", "atlas", NULL};
    static const char *const outputs[] = {"edn", "porcupine", NULL};
    struct linearize_settings *settings = &arguments->settings;
    double value = 0;
    int chosen = 0;
    switch (option) {
    case 'm': return arguments->model_given = model_find(word, &settings->model.model);
    case 'p':
        if (!number(word, 1, 1e9, &value) || value != (double)(int64_t)value) return false;
        settings->model.permits = (int64_t)value;
        return true;
    case 'i': return initial(word, settings);
    case 'r':
        settings->policies.failed_release = (enum release_reading)(chosen = which(word, releases));
        return chosen >= 0;
    case 't': settings->policies.timeout_not_happened = (chosen = which(word, timeouts)) == 1; return chosen >= 0;
    case 'l': return settings->policies.leases = true;
    case 'M':
        if (!number(word, 0, 1 << 20, &value)) return false;
        settings->memory_bytes = (uint64_t)(value * (1 << 20));
        return true;
    case 'T':
        if (!number(word, 0, 1e6, &value)) return false;
        settings->time_ns = (int64_t)(value * 1e9);
        return true;
    case 'f': settings->form = (enum linearize_form)(chosen = which(word, forms)); return chosen >= 0;
    default:
        arguments->writes = true;
        arguments->output = (enum linearize_output)(chosen = which(word, outputs));
        return chosen >= 0;
    }
}

static bool parse(int argc, char **argv, struct arguments *arguments) {
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
        if (option_take(arguments, option, optarg)) continue;
        fprintf(stderr, "--%s: not a usable value: %s\n", options[place].name, optarg);
        return false;
    }
    if (!arguments->model_given || optind + 1 != argc) {
        fprintf(stderr, "usage: linearize --model ");
        for (int each = 0; each < MODEL_COUNT; each++)
            fprintf(stderr, "%s%s", each ? "|" : "", model_name((enum model)each));
        fprintf(stderr, " [options] FILE\n");
        return false;
    }
    enum model model = arguments->settings.model.model;
    arguments->settings.policies.nests = model == MODEL_REENTRANT_MUTEX || model == MODEL_SEMAPHORE;
    return true;
}

int main(int argc, char **argv) {
    struct arguments arguments = {
        .settings = {.model.permits = 1, .memory_bytes = (uint64_t)MEMORY_MIB << 20, .time_ns = TIME_S * 1000000000LL}};
    struct history_error error = {.text = ""};
    json_t *said = NULL;
    int status = LINEARIZE_BAD;
    if (!parse(argc, argv, &arguments)) return LINEARIZE_BAD;
    if (arguments.writes) {
        if (linearize_write(argv[optind], &arguments.settings, arguments.output, stdout, &error)) return 0;
    } else {
        status = linearize_file(argv[optind], &arguments.settings, &said, &error);
    }
    if (!said) return fprintf(stderr, "%s\n", error.text), LINEARIZE_BAD;
    json_dumpf(said, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(said);
    return fflush(stdout) == 0 ? status : LINEARIZE_BAD;
}
