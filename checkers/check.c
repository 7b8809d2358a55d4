/* check [--require a,b] FILE: judges a recorded history, binary or JSON Lines, and prints the verdict as one JSON
 * object. Exit status: 0 every required property holds, 1 one is violated, 2 bad usage or a damaged history, 3
 * inconclusive. Required by default: every property that applies to the lock. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkers/checker.h"
#include "harness/history_json.h"

enum { CHECKERS = 16, EXIT_VIOLATED = 1, EXIT_BAD = 2, EXIT_INCONCLUSIVE = 3 };

static const char *const STATUS[] = {"inconclusive", "holds", "violated"};

struct fault_seen {
    uint32_t name; /* key */
    int64_t target;
    bool proved, taken_back; /* taken back: it was not seen to take effect, the trial goes without it */
};

/* What a history must have to be judged at all, and what it says of itself. */
struct assumptions {
    uint64_t records, torn, dropped, grants;
    struct check_table faults;
    int64_t faults_meant; /* by the driver: of so many one at least has to take effect; 0: it did not say */
    json_t *parameters;
};

struct judgement {
    struct check check;
    void *state[CHECKERS];
    struct verdict verdict[CHECKERS];
    bool required[CHECKERS];
    int checkers;
    bool all_required;
    struct assumptions assumptions;
};

/* --- assumptions --- */

/* A proof is of the last injection of that fault into that target. */
static void fault_note(struct assumptions *assumptions, const struct history_record *record) {
    struct fault_seen *fault = NULL;
    if (record->kind == HISTORY_FAULT_INJECT) {
        fault = check_table_add(&assumptions->faults, record->name);
        fault->target = record->value;
        return;
    }
    for (size_t each = assumptions->faults.count; each-- > 0;) {
        fault = (struct fault_seen *)assumptions->faults.entries + each;
        if (fault->name != record->name || fault->target != record->value) continue;
        fault->proved |= record->outcome == OUTCOME_OK;
        fault->taken_back |= record->outcome == OUTCOME_REFUSED;
        return;
    }
}

static void parameter_note(struct judgement *judgement, const struct history_record *record) {
    char key[128], value[1024];
    check_name(&judgement->check, record->name, key, sizeof key);
    json_t *said = record->flags & HISTORY_FLAG_TEXT
                       ? json_string(check_name(&judgement->check, (uint32_t)record->value, value, sizeof value))
                       : json_integer(record->value);
    json_object_set_new(judgement->assumptions.parameters, key, said);
    if (strcmp(key, "faults_meant") == 0) judgement->assumptions.faults_meant = record->value;
}

static void assumptions_take(struct judgement *judgement, const struct history_record *record) {
    struct assumptions *assumptions = &judgement->assumptions;
    assumptions->records++;
    if (record->kind == HISTORY_ACQUIRE_RETURN) assumptions->grants += record->outcome == OUTCOME_OK;
    if (record->kind == HISTORY_FAULT_INJECT || record->kind == HISTORY_FAULT_PROVE) fault_note(assumptions, record);
    if (record->kind == HISTORY_PARAMETER) parameter_note(judgement, record);
}

/* Whether a fault is in doubt: one that was neither seen to take effect nor taken back, or all of them. */
static bool faults_fail(const struct judgement *judgement, char *text, size_t size) {
    const struct assumptions *assumptions = &judgement->assumptions;
    const struct fault_seen *fault = assumptions->faults.entries;
    size_t count = assumptions->faults.count, proved = 0;
    char name[64];
    for (size_t each = 0; each < count; each++, fault++) {
        proved += fault->proved;
        if (fault->proved || fault->taken_back) continue;
        snprintf(text, size, "the fault %s was not seen to take effect",
                 check_name(&judgement->check, fault->name, name, sizeof name));
        return true;
    }
    snprintf(text, size, "none of the faults was seen to take effect");
    return proved == 0 && (count > 0 || assumptions->faults_meant > 0);
}

/* Why nothing can be said to hold; NULL when it can. What is seen to be violated stays so. */
static const char *assumptions_fault(const struct judgement *judgement, char *text, size_t size) {
    const struct assumptions *assumptions = &judgement->assumptions;
    if (assumptions->records == 0) return "the history is empty";
    if (assumptions->dropped) {
        snprintf(text, size, "%llu records found no room", (unsigned long long)assumptions->dropped);
        return text;
    }
    if (assumptions->torn) {
        snprintf(text, size, "%llu records are torn", (unsigned long long)assumptions->torn);
        return text;
    }
    if (faults_fail(judgement, text, size)) return text;
    return assumptions->grants ? NULL : "nobody was granted the lock";
}

/* --- judging --- */

static bool judge_records(struct judgement *judgement, const char *path) {
    struct history_record record;
    struct history_reader *reader = judgement->check.reader;
    for (;;) {
        enum history_state state = history_reader_next(reader, false, &record);
        uint64_t index = history_reader_index(reader);
        if (state == HISTORY_END) return true;
        if (state == HISTORY_TORN) {
            judgement->assumptions.torn++;
        } else if (state == HISTORY_DAMAGED) {
            fprintf(stderr, "%s: damaged record %llu at byte %llu: its content does not fit its check word\n", path,
                    (unsigned long long)index, (unsigned long long)(HISTORY_HEADER_SIZE + index * HISTORY_RECORD_SIZE));
            return false;
        } else {
            assumptions_take(judgement, &record);
            for (int each = 0; each < judgement->checkers; each++)
                CHECKER_TABLE[each]->record(judgement->state[each], &record, index);
        }
    }
}

static void judge_end(struct judgement *judgement) {
    char text[160];
    judgement->assumptions.dropped = history_reader_dropped(judgement->check.reader);
    const char *fault = assumptions_fault(judgement, text, sizeof text);
    for (int each = 0; each < judgement->checkers; each++) {
        struct verdict *verdict = &judgement->verdict[each];
        CHECKER_TABLE[each]->finish(judgement->state[each], verdict);
        if (judgement->all_required) judgement->required[each] = verdict->applies;
        if (!fault || verdict->status == VERDICT_VIOLATED) continue;
        verdict->status = VERDICT_INCONCLUSIVE;
        snprintf(verdict->reason, sizeof verdict->reason, "%s", fault);
    }
}

static int exit_status(const struct judgement *judgement) {
    int status = 0;
    for (int each = 0; each < judgement->checkers; each++) {
        if (!judgement->required[each]) continue;
        if (judgement->verdict[each].status == VERDICT_VIOLATED) return EXIT_VIOLATED;
        if (judgement->verdict[each].status == VERDICT_INCONCLUSIVE) status = EXIT_INCONCLUSIVE;
    }
    return status;
}

/* --- saying --- */

static json_t *evidence_json(const struct verdict *verdict) {
    json_t *list = json_array();
    for (int each = 0; each < verdict->evidence_count; each++) {
        json_t *records = json_array();
        for (int record = 0; record < verdict->evidence[each].record_count; record++)
            json_array_append_new(records, json_integer((json_int_t)verdict->evidence[each].records[record]));
        json_array_append_new(list, json_pack("{s:s,s:o}", "text", verdict->evidence[each].text, "records", records));
    }
    return list;
}

static json_t *verdict_json(const struct judgement *judgement) {
    json_t *object = json_object();
    for (int each = 0; each < judgement->checkers; each++) {
        const struct verdict *verdict = &judgement->verdict[each];
        json_t *said = json_pack("{s:s,s:I,s:o}", "status", STATUS[verdict->status], "count",
                                 (json_int_t)verdict->count, "evidence", evidence_json(verdict));
        for (int part = 0; part < VERDICT_PARTS && verdict->parts[part].name; part++) {
            char key[64];
            snprintf(key, sizeof key, "%ss", verdict->parts[part].name);
            for (char *blank; (blank = strchr(key, ' '));) *blank = '_';
            json_object_set_new(said, key, json_integer((json_int_t)verdict->parts[part].count));
        }
        if (verdict->stopped) json_object_set_new(said, "fenced", json_integer((json_int_t)verdict->stopped));
        if (verdict->status == VERDICT_INCONCLUSIVE) json_object_set_new(said, "reason", json_string(verdict->reason));
        json_object_set_new(object, CHECKER_TABLE[each]->property, said);
    }
    return object;
}

/* "1 stale write, 9 lost updates" */
static size_t parts_say(const struct verdict *verdict, char *text, size_t size) {
    size_t used = 0;
    for (int part = 0; part < VERDICT_PARTS && verdict->parts[part].name; part++) {
        const struct verdict_part *each = &verdict->parts[part];
        if (each->count)
            used += (size_t)snprintf(text + used, size - used, "%s%llu %s%s", used ? ", " : "",
                                     (unsigned long long)each->count, each->name, each->count == 1 ? "" : "s");
    }
    return used;
}

/* "Mutual exclusion violated, integrity holds (1 stale access fenced), fencing holds". What does not apply is left out.
 */
static json_t *sentence_json(const struct judgement *judgement) {
    char text[512] = "";
    size_t used = 0;
    for (int each = 0; each < judgement->checkers; each++) {
        const struct verdict *verdict = &judgement->verdict[each];
        if (!verdict->applies && !judgement->required[each]) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
                                 CHECKER_TABLE[each]->title, STATUS[verdict->status]);
        char parts[128];
        if (parts_say(verdict, parts, sizeof parts))
            used += (size_t)snprintf(text + used, sizeof text - used, " (%s)", parts);
        else if (verdict->stopped && strcmp(CHECKER_TABLE[each]->property, "integrity") == 0)
            used += (size_t)snprintf(text + used, sizeof text - used, " (%llu stale write%s fenced)",
                                     (unsigned long long)verdict->stopped, verdict->stopped == 1 ? "" : "s");
    }
    if (used) text[0] = (char)(text[0] - 'a' + 'A');
    return json_string(text);
}

static json_t *faults_json(const struct judgement *judgement) {
    json_t *list = json_array();
    char name[64], target[64];
    for (size_t each = 0; each < judgement->assumptions.faults.count; each++) {
        const struct fault_seen *fault = (const struct fault_seen *)judgement->assumptions.faults.entries + each;
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:b}", "name", check_name(&judgement->check, fault->name, name, sizeof name),
                            "target", check_name(&judgement->check, (uint32_t)fault->target, target, sizeof target),
                            "proved", fault->proved));
    }
    return list;
}

static void say(const struct judgement *judgement, int status) {
    const struct assumptions *assumptions = &judgement->assumptions;
    json_t *required = json_array();
    for (int each = 0; each < judgement->checkers; each++)
        if (judgement->required[each]) json_array_append_new(required, json_string(CHECKER_TABLE[each]->property));
    json_t *said =
        json_pack("{s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:o,s:i}", "verdict", verdict_json(judgement), "sentence",
                  sentence_json(judgement), "required", required, "faults", faults_json(judgement), "records",
                  (json_int_t)assumptions->records, "torn", (json_int_t)assumptions->torn, "dropped",
                  (json_int_t)assumptions->dropped, "grants", (json_int_t)assumptions->grants, "parameters",
                  json_incref(assumptions->parameters), "exit", status);
    json_dumpf(said, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(said);
}

/* --- input --- */

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
static bool require(struct judgement *judgement, char *list) {
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        int found = -1;
        for (char *letter = word; *letter; letter++) *letter = *letter == '-' ? '_' : *letter;
        for (int each = 0; each < judgement->checkers; each++)
            if (strcmp(word, CHECKER_TABLE[each]->property) == 0) found = each;
        if (found < 0) return fprintf(stderr, "--require: no property is called %s\n", word), false;
        judgement->required[found] = true;
        judgement->all_required = false;
    }
    return true;
}

int main(int argc, char **argv) {
    struct judgement judgement = {.all_required = true};
    const struct option options[] = {{"require", required_argument, NULL, 'r'}, {0}};
    while (CHECKER_TABLE[judgement.checkers]) judgement.checkers++;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        if (option != 'r' || !require(&judgement, optarg)) return EXIT_BAD;
    if (optind + 1 != argc) return fprintf(stderr, "usage: check [--require PROPERTY,...] FILE\n"), EXIT_BAD;
    void *image = NULL;
    judgement.check.reader = input_open(argv[optind], &image);
    if (!judgement.check.reader) return free(image), EXIT_BAD;
    judgement.assumptions.parameters = json_object();
    judgement.assumptions.faults.size = sizeof(struct fault_seen);
    for (int each = 0; each < judgement.checkers; each++)
        judgement.state[each] = CHECKER_TABLE[each]->open(&judgement.check);
    bool whole = judge_records(&judgement, argv[optind]);
    judge_end(&judgement);
    int status = whole ? exit_status(&judgement) : EXIT_BAD;
    if (whole) say(&judgement, status);
    json_decref(judgement.assumptions.parameters);
    check_table_free(&judgement.assumptions.faults);
    history_reader_close(judgement.check.reader);
    free(image);
    return status;
}
