/* check [OPTIONS] FILE: judges a recorded history, binary or JSON Lines, and prints the verdict as one JSON object.
 *
 *   --require a,b         only these properties decide the exit status; otherwise all that apply and are not advisory
 *   --release-policy P    a release that failed: released (default), not-happened, unknown
 *   --acquire-timeout P   an acquire of unknown outcome: not-happened (default), unknown
 *   --all-policies        the verdict under each of these, too
 *
 * Exit status: 0 every required property holds, 1 one is violated, 2 bad usage or a damaged history, 3 inconclusive. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkers/say.h"
#include "harness/history_json.h"

static const char USAGE[] = "usage: check [--require PROPERTY,...] [--release-policy not-happened|released|unknown] "
                            "[--acquire-timeout not-happened|unknown] [--all-policies] FILE\n";

/* What the command line asks for. */
struct wish {
    struct demand demand;
    struct policy policy;
    bool all;
    const char *path;
};

/* The first byte, which tells what follows and also a pipe gives back; EOF: there is none. */
static int first_byte(FILE *file) {
    int first = getc(file);
    return first == EOF ? EOF : ungetc(first, file);
}

/* A reader on either form; NULL with a message. *image is freed by the caller after the reader. */
static struct history_reader *input_open(const char *path, void **image) {
    struct history_error error = {.text = ""};
    struct history_reader *reader = NULL;
    struct stat stat;
    size_t bytes = 0;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &stat) < 0 || S_ISDIR(stat.st_mode)) {
        fprintf(stderr, "%s: %s\n", path, file ? strerror(EISDIR) : strerror(errno));
    } else if (first_byte(file) == EOF && !ferror(file)) {
        struct history_settings nothing = {.time = HISTORY_TIME_VIRTUAL};
        *image = malloc(HISTORY_HEADER_SIZE);
        if (!*image) abort();
        history_header_fill(*image, &nothing, 0);
        reader = history_reader_memory(*image, HISTORY_HEADER_SIZE, &error);
    } else if (first_byte(file) == 'l') { /* "lckstorm"; JSON begins with a brace */
        reader = history_reader_open(path, &error);
        if (!reader) fprintf(stderr, "%s\n", error.text);
    } else if (history_json_read(file, image, &bytes, &error)) {
        reader = history_reader_memory(*image, bytes, &error);
    } else {
        fprintf(stderr, "%s: neither a history nor its JSON Lines form: %s\n", path, error.text);
    }
    if (file) fclose(file);
    return reader;
}

/* A comma-separated list of properties; '-' and '_' are the same. */
static bool require(struct demand *demand, char *list) {
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        int found = -1;
        for (char *letter = word; *letter; letter++) *letter = *letter == '-' ? '_' : *letter;
        for (int each = 0; CHECKER_TABLE[each]; each++)
            if (strcmp(word, CHECKER_TABLE[each]->property) == 0) found = each;
        if (found < 0) return fprintf(stderr, "--require: no property is called %s\n", word), false;
        demand->required[found] = true;
        demand->chosen = true;
    }
    return true;
}

/* The place of a word among those that there are. */
static bool choose(const char *option, const char *word, const char *const *words, int count, int *chosen) {
    for (int each = 0; each < count; each++)
        if (strcmp(word, words[each]) == 0) return *chosen = each, true;
    fprintf(stderr, "%s: %s is none of", option, word);
    for (int each = 0; each < count; each++) fprintf(stderr, " %s", words[each]);
    fprintf(stderr, "\n");
    return false;
}

static bool parse(int argc, char **argv, struct wish *wish) {
    const struct option options[] = {{"require", required_argument, NULL, 'r'},
                                     {"release-policy", required_argument, NULL, 'R'},
                                     {"acquire-timeout", required_argument, NULL, 'A'},
                                     {"all-policies", no_argument, NULL, 'a'},
                                     {0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        int chosen = 0;
        switch (option) {
        case 'r':
            if (!require(&wish->demand, optarg)) return false;
            break;
        case 'R':
            if (!choose("--release-policy", optarg, RELEASE_POLICY, RELEASE_POLICIES, &chosen)) return false;
            wish->policy.release = (enum release_policy)chosen;
            break;
        case 'A':
            if (!choose("--acquire-timeout", optarg, ACQUIRE_POLICY, ACQUIRE_POLICIES, &chosen)) return false;
            wish->policy.acquire = (enum acquire_policy)chosen;
            break;
        case 'a': wish->all = true; break;
        default: return false;
        }
    }
    if (optind + 1 != argc) return fputs(USAGE, stderr), false;
    wish->path = argv[optind];
    return true;
}

static int check(const struct wish *wish, struct history_reader *reader) {
    static struct readings readings;
    const struct policy widest = wish->all ? (struct policy){RELEASE_UNKNOWN, ACQUIRE_UNKNOWN} : wish->policy;
    int status = EXIT_BAD;
    if (readings_judge(&readings, reader, policy_readings(widest))) {
        json_t *said = say(&readings, &wish->demand, wish->policy, wish->all, &status);
        json_dumpf(said, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        putchar('\n');
        json_decref(said);
    } else {
        uint64_t index = readings.first.damaged;
        fprintf(stderr, "%s: damaged record %llu at byte %llu: its content does not fit its check word\n", wish->path,
                (unsigned long long)index, (unsigned long long)(HISTORY_HEADER_SIZE + index * HISTORY_RECORD_SIZE));
    }
    readings_close(&readings);
    return status;
}

int main(int argc, char **argv) {
    struct wish wish = {.policy = {RELEASE_RELEASED, ACQUIRE_NOT_HAPPENED}};
    if (!parse(argc, argv, &wish)) return EXIT_BAD;
    void *image = NULL;
    struct history_reader *reader = input_open(wish.path, &image);
    int status = reader ? check(&wish, reader) : EXIT_BAD;
    history_reader_close(reader);
    free(image);
    return status;
}
