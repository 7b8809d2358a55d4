#include "harness/search/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/grown.h"

enum { NAME = 80, AMOUNT_MOST_MS = 1000000000, WORDS_MOST = 12 };

static const char BEFORE[] = "before ";

/* What stands before the first number of a target, and before the second one, if it has one. A second part that begins
 * with a space is a word of its own; others are left out for the first of the parts. */
static const struct {
    const char *first, *second;
} TARGETS[] = {
    [TARGET_NOTHING] = {"", NULL},
    [TARGET_CLIENT] = {"client-", NULL},
    [TARGET_TASK] = {"client-", "-watchdog"},
    [TARGET_LATE] = {"late-", NULL},
    [TARGET_THREAD] = {"client-", " thread-"},
    [TARGET_LINK] = {"client-", " link-"},
    [TARGET_NODE] = {"redis-", NULL},
    [TARGET_REPLICA] = {"redis-", "-replica-"},
};

static const char *target_first(enum choice_target target, enum choice_kind kind) {
    return kind == CHOICE_STREAM ? "stream-" : TARGETS[target].first;
}

/* The words of steps that do not begin with who takes them. */
static const char *const STEP_WORDS[CHOICE_FAULTS_FROM] = {[CHOICE_CALL] = "call",
                                                           [CHOICE_REQUEST] = "request",
                                                           [CHOICE_ANSWER] = "answer",
                                                           [CHOICE_CLOCK] = "clock",
                                                           [CHOICE_QUIET] = "quiet"};

/* --- a value --- */

void schedule_add(struct schedule *schedule, struct deviation deviation) {
    schedule->deviations =
        grown(schedule->deviations, schedule->count + 1, &schedule->room, sizeof *schedule->deviations);
    schedule->deviations[schedule->count++] = deviation;
}

void schedule_copy(struct schedule *to, const struct schedule *from) {
    workload_copy(&to->workload, &from->workload);
    to->count = 0;
    for (size_t each = 0; each < from->count; each++) schedule_add(to, from->deviations[each]);
}

void schedule_free(struct schedule *schedule) {
    free(schedule->deviations);
    schedule->deviations = NULL;
    schedule->count = schedule->room = 0;
}

/* --- written --- */

/* A node's first replica has the node's name, and a client's worker the client's. */
static void target_write(enum choice_target target, struct choice choice, char name[NAME]) {
    int units = choice_units(target) > 1 ? choice_units(target) : 1;
    bool is_replica = target == TARGET_REPLICA;
    int first = is_replica ? replica_node(choice.who) : choice.who / units;
    int second = is_replica ? replica_server(choice.who) - 1 : choice.who % units;
    name[0] = '\0';
    if (target == TARGET_NOTHING) return;
    int length = snprintf(name, NAME, "%s%d", target_first(target, choice.kind), first + 1);
    const char *word = TARGETS[target].second;
    if (!word || (second == 0 && word[0] != ' ')) return;
    if (target == TARGET_TASK) snprintf(name + length, NAME - (size_t)length, "%s", word);
    else snprintf(name + length, NAME - (size_t)length, "%s%d", word, second + 1);
}

static const char *choice_write(const struct choice_space *space, struct choice choice, char text[NAME]) {
    enum choice_target target = choice_target(space, choice.kind);
    const char *word = choice_is_fault(choice.kind) ? choice_fault_name(choice.kind) : STEP_WORDS[choice.kind];
    char name[NAME], amount[24] = "";
    target_write(target, choice, name);
    if (choice_has_amount(choice.kind)) snprintf(amount, sizeof amount, " %lld", (long long)choice.amount);
    snprintf(text, NAME, "%s%s%.40s%s", word ? word : "", word && name[0] ? " " : "", name, amount);
    return text;
}

const char *deviation_write(const struct choice_space *space, const struct deviation *deviation,
                            char line[SCHEDULE_LINE]) {
    char usual[NAME], instead[NAME];
    snprintf(line, SCHEDULE_LINE, "%s%s %llu: %s", BEFORE, choice_write(space, deviation->usual, usual),
             (unsigned long long)deviation->step, choice_write(space, deviation->instead, instead));
    return line;
}

/* --- read --- */

/* The number after a prefix, which counts from 1 to `most`, as an index from 0; *rest is what follows it. -1: the word
 * is another. */
static int numbered(const char *word, const char *prefix, int most, const char **rest) {
    size_t length = strlen(prefix);
    char *end = NULL;
    long number = word && strncmp(word, prefix, length) == 0 ? strtol(word + length, &end, 10) : 0;
    if (number < 1 || number > most || end[-1] < '0' || end[-1] > '9') return -1;
    *rest = end;
    return (int)number - 1;
}

/* The same where nothing may follow. */
static int numbered_alone(const char *word, const char *prefix, int most) {
    const char *rest = "";
    int number = numbered(word, prefix, most, &rest);
    return *rest == '\0' ? number : -1;
}

/* Reads a target from the words at *used, which moves on. The list of words ends with NULL. */
static bool target_read(const struct choice_space *space, char **words, int *used, struct choice *choice) {
    enum choice_target target = choice_target(space, choice->kind);
    const char *rest = "", *second = TARGETS[target].second;
    int units = choice_units(target), part = 0;
    if (target == TARGET_NOTHING) return true;
    int most = target == TARGET_LATE ? space->late : units > 0 ? space->clients : space->nodes;
    int number = numbered(words[(*used)++], target_first(target, choice->kind), most, &rest);
    if (number < 0 || (*rest && (!second || *second == ' '))) return false;
    if (second && *second == ' ') part = numbered_alone(words[(*used)++], second + 1, units);
    else if (*rest && target == TARGET_TASK) part = strcmp(rest, second) == 0 ? 1 : -1;
    else if (*rest) part = numbered_alone(rest, second, space->replicas);
    if (target == TARGET_REPLICA) choice->who = replica_number(number, part + 1);
    else choice->who = units > 1 ? number * units + part : number;
    return part >= 0;
}

/* The kind of step that a word begins; *used moves on if the word is not already who takes it. */
static enum choice_kind step_kind_read(const struct choice_space *space, const char *word, int *used) {
    static const struct {
        const char *prefix;
        enum choice_kind kind;
    } TAKERS[] = {{"client-", CHOICE_TASK}, {"late-", CHOICE_LATE}, {"stream-", CHOICE_STREAM}};
    enum choice_kind found = CHOICE_NONE;
    for (int kind = 0; kind < CHOICE_FAULTS_FROM; kind++)
        if (STEP_WORDS[kind] && strcmp(word, STEP_WORDS[kind]) == 0) found = (enum choice_kind)kind;
    *used += found != CHOICE_NONE;
    for (size_t each = 0; each < sizeof TAKERS / sizeof TAKERS[0]; each++)
        if (strncmp(word, TAKERS[each].prefix, strlen(TAKERS[each].prefix)) == 0) found = TAKERS[each].kind;
    return space->steps >> found & 1 ? found : CHOICE_NONE;
}

static bool step_read(const struct choice_space *space, char **words, int *used, struct choice *step) {
    step->kind = words[*used] ? step_kind_read(space, words[*used], used) : CHOICE_NONE;
    return step->kind != CHOICE_NONE && target_read(space, words, used, step);
}

static bool amount_read(const char *word, struct choice *choice) {
    char *end = NULL;
    choice->amount = word ? strtoll(word, &end, 10) : 0;
    int64_t least = choice_sets_clock(choice->kind) ? -AMOUNT_MOST_MS : 1;
    return end && end != word && *end == '\0' && choice->amount != 0 && choice->amount >= least &&
           choice->amount <= AMOUNT_MOST_MS;
}

/* Reads what happens instead, up to the end of the line. */
static bool instead_read(const struct choice_space *space, char **words, int at, struct choice *instead,
                         const char **reason) {
    int used = at;
    if (!words[at]) return false;
    instead->kind = choice_fault_named(space, words[at]);
    if (instead->kind == CHOICE_NONE) {
        *reason = words[at + 1] ? space->has_no_such_fault : space->steps_are;
        return step_read(space, words, &used, instead) && !words[used];
    }
    used++;
    *reason = space->targets_are;
    if (!target_read(space, words, &used, instead)) return false;
    *reason =
        choice_has_amount(instead->kind) ? "milliseconds are missing or out of range" : "this fault has no duration";
    if (!choice_has_amount(instead->kind)) return !words[used];
    return amount_read(words[used], instead) && !words[used + 1];
}

bool deviation_read(const struct choice_space *space, const char *line, struct deviation *deviation,
                    const char **reason) {
    char copy[SCHEDULE_LINE], *words[WORDS_MOST + 1] = {NULL}, *rest = NULL, *end = NULL;
    int count = 0, used = 1;
    *deviation = (struct deviation){0};
    *reason = "a line is: before STEP NUMBER: STEP, or: before STEP NUMBER: FAULT TARGET [MILLISECONDS]";
    if (strlen(line) >= sizeof copy) return false;
    strcpy(copy, line);
    for (char *word = strtok_r(copy, " \t", &rest); word && count < WORDS_MOST; word = strtok_r(NULL, " \t", &rest))
        words[count++] = word;
    if (count < 4 || count == WORDS_MOST || strcmp(words[0], "before") != 0) return false;
    *reason = space->steps_are;
    if (!step_read(space, words, &used, &deviation->usual) || deviation->usual.kind == CHOICE_QUIET) return false;
    *reason = "the number of the step is missing, and a colon";
    if (!words[used] || words[used][0] < '0' || words[used][0] > '9') return false;
    deviation->step = strtoull(words[used], &end, 10);
    if (deviation->step == 0 || strcmp(end, ":") != 0) return false;
    return instead_read(space, words, used + 1, &deviation->instead, reason);
}

bool schedule_line_read(const struct choice_space *space, const char *line, struct schedule *schedule,
                        const char **reason) {
    struct deviation deviation;
    if (strncmp(line, BEFORE, strlen(BEFORE)) != 0 && space->message == TARGET_LINK)
        return workload_line_read(&schedule->workload, line, reason);
    if (!deviation_read(space, line, &deviation, reason)) return false;
    schedule_add(schedule, deviation);
    return true;
}
