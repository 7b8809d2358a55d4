/* check [OPTIONS] FILE: judges a recorded history, binary or JSON Lines, and prints the verdict as one JSON object.
 *
 *   --require a,b         only these properties decide the exit status; otherwise all that apply and are not advisory
 *   --release-policy P    a release that failed: released (default), not-happened, unknown
 *   --acquire-timeout P   an acquire of unknown outcome: not-happened (default), unknown
 *   --all-policies        also the verdict under every combination of these two
 *
 * Exit status: 0 every required property holds, 1 one is violated, 2 bad usage or a damaged history, 3 inconclusive. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkers/commands/render.h"
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

/* The first byte, which stays to be read, of a pipe too; EOF at the end. */
static int first_byte(FILE *file) {
    int first = getc(file);
    return first == EOF ? EOF : ungetc(first, file);
}

/* An unlinked file in TMPDIR or /tmp: its content need not fit in memory. */
static FILE *scratch_open(struct history_error *error) {
    const char *directory = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lockstorm-check-XXXXXX", directory && *directory ? directory : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!file) snprintf(error->text, sizeof error->text, "%.160s: %s", path, strerror(errno));
    if (fd >= 0) unlink(path);
    return file;
}

/* Converts JSON Lines to their binary form. An empty file is a history in which nothing happened. */
static struct history_reader *lines_open(FILE *lines, const char *path, struct history_error *error) {
    struct history_reader *reader = NULL;
    FILE *binary = scratch_open(error);
    if (!binary) return NULL;
    char header[HISTORY_HEADER_SIZE];
    history_header_fill(header, &(struct history_settings){.time = HISTORY_TIME_VIRTUAL}, 0);
    bool empty = first_byte(lines) == EOF && !ferror(lines);
    struct history_error wrong = {.text = "no room"};
    bool good = empty ? fwrite(header, sizeof header, 1, binary) == 1 && fflush(binary) == 0
                      : history_json_read(lines, binary, &wrong);
    if (good) reader = history_reader_map(fileno(binary), path, error);
    else
        snprintf(error->text, sizeof error->text, "%.60s: neither a history nor its JSON Lines form: %.150s", path,
                 wrong.text);
    fclose(binary);
    return reader;
}

/* A reader on either form; NULL with a message. */
static struct history_reader *input_open(const char *path) {
    struct history_error error = {.text = ""};
    struct history_reader *reader = NULL;
    struct stat stat;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &stat) < 0 || S_ISDIR(stat.st_mode))
        snprintf(error.text, sizeof error.text, "%.160s: %s", path, strerror(file ? EISDIR : errno));
    else if (first_byte(file) == 'l') /* the binary form begins with "lckstorm", JSON with a brace */
        reader = history_reader_open(path, &error);
    else reader = lines_open(file, path, &error);
    if (file) fclose(file);
    if (!reader) fprintf(stderr, "%s\n", error.text);
    return reader;
}

/* The index of a word in a list. */
static bool choose(const char *option, const char *word, const char *const *words, int count, int *chosen) {
    for (int each = 0; each < count; each++)
        if (strcmp(word, words[each]) == 0) {
            *chosen = each;
            return true;
        }
    fprintf(stderr, "%s: %s is not one of", option, word);
    for (int each = 0; each < count; each++) fprintf(stderr, " %s", words[each]);
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
            if (!choose("--release-policy", optarg, RELEASE_POLICY, RELEASE_POLICIES, &chosen)) return false;
            request->policy.release = (enum release_policy)chosen;
            break;
        case 'A':
            if (!choose("--acquire-timeout", optarg, ACQUIRE_POLICY, ACQUIRE_POLICIES, &chosen)) return false;
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
        describe_damage(&readings, request->path, &error);
        fprintf(stderr, "%s\n", error.text);
    }
    readings_close(&readings);
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
