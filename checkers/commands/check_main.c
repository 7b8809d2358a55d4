/* check [OPTIONS] FILE: judges a recorded history, binary or JSON Lines, and prints the verdict as one JSON object.
 *
 *   --require a,b         only these properties decide the exit status; otherwise all that apply and are not advisory
 *   --release-policy P    a release that failed: released (default), not-happened, unknown
 *   --acquire-timeout P   an acquire of unknown outcome: not-happened (default), unknown
 *   --all-policies        also the verdict under every combination of these two
 *
 * Exit status: 0 every required property holds, 1 one is violated, 2 bad usage or a damaged history, 3 inconclusive. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "checkers/commands/render.h"
#include "checkers/formats/text.h"
#include "harness/history/history_json.h"

static const char USAGE[] = "usage: check [--require PROPERTY,...] [--release-policy not-happened|released|unknown] "
                            "[--acquire-timeout not-happened|unknown] [--all-policies] FILE\n";

/* What the command line asks for. */
struct check_request {
    struct demand demand;
    struct policy policy;
    bool all;
    const char *path;
};

/* A reader on either form; NULL with a message. An empty file is a history in which nothing happened. */
static struct history_reader *input_open(const char *path) {
    static char nothing[HISTORY_HEADER_SIZE];
    struct history_error error = {.text = ""};
    struct history_reader *reader = NULL;
    struct stat stat;
    FILE *file = fopen(path, "re");
    bool readable = file && fstat(fileno(file), &stat) == 0 && !S_ISDIR(stat.st_mode);
    int first = readable ? getc(file) : EOF;
    if (!readable) {
        history_fail(&error, "%.160s: %s", path, strerror(file ? EISDIR : errno));
    } else if (first == EOF && !ferror(file)) {
        history_header_fill(nothing, &(struct history_settings){.time = HISTORY_TIME_VIRTUAL}, 0);
        reader = history_reader_memory(nothing, sizeof nothing, &error);
    } else if (ungetc(first, file) == 'l') { /* the binary form begins with "lckstorm", JSON with a brace */
        reader = history_reader_open(path, &error);
    } else {
        reader = history_json_open(file, path, "neither a history nor its JSON Lines form: ", NULL, NULL, &error);
    }
    if (file) fclose(file);
    if (!reader) fprintf(stderr, "%s\n", error.text);
    return reader;
}

static bool choose(const char *option, const char *word, const char *const *words, int *chosen) {
    *chosen = text_place(word, words);
    if (*chosen >= 0) return true;
    fprintf(stderr, "%s: %s is not one of", option, word);
    for (; *words; words++) fprintf(stderr, " %s", *words);
    fprintf(stderr, "\n");
    return false;
}

static bool check_request_parse(int argc, char **argv, struct check_request *request) {
    const struct option options[] = {{"require", required_argument, NULL, 'r'},
                                     {"release-policy", required_argument, NULL, 'R'},
                                     {"acquire-timeout", required_argument, NULL, 'A'},
                                     {"all-policies", no_argument, NULL, 'a'},
                                     {0}};
    struct history_error error;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        int chosen = 0;
        switch (option) {
        case 'r':
            if (!demand_parse(&request->demand, optarg, &error)) {
                fprintf(stderr, "%s\n", error.text);
                return false;
            }
            break;
        case 'R':
            if (!choose("--release-policy", optarg, RELEASE_POLICY, &chosen)) return false;
            request->policy.release = (enum release_policy)chosen;
            break;
        case 'A':
            if (!choose("--acquire-timeout", optarg, ACQUIRE_POLICY, &chosen)) return false;
            request->policy.acquire = (enum acquire_policy)chosen;
            break;
        case 'a': request->all = true; break;
        default: return false;
        }
    }
    if (optind + 1 != argc) {
        fputs(USAGE, stderr);
        return false;
    }
    request->path = argv[optind];
    return true;
}

static int check(const struct check_request *request, struct history_reader *reader) {
    static struct readings readings;
    const struct policy widest = request->all ? (struct policy){RELEASE_UNKNOWN, ACQUIRE_UNKNOWN} : request->policy;
    int status = EXIT_BAD;
    if (readings_judge(&readings, reader, widest)) {
        json_t *verdict = render_verdict(&readings, &request->demand, request->policy, request->all, &status);
        json_dumpf(verdict, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        putchar('\n');
        json_decref(verdict);
    } else {
        struct history_error error;
        history_fail_damaged(&error, request->path, readings.first.damaged);
        fprintf(stderr, "%s\n", error.text);
    }
    judge_close(&readings.first);
    return status;
}

int main(int argc, char **argv) {
    struct check_request request = {.policy = {RELEASE_RELEASED, ACQUIRE_NOT_HAPPENED}};
    if (!check_request_parse(argc, argv, &request)) return EXIT_BAD;
    struct history_reader *reader = input_open(request.path);
    int status = reader ? check(&request, reader) : EXIT_BAD;
    history_reader_close(reader);
    return status;
}
