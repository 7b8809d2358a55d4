#include "harness/library_search/library_schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/names/fault_rows.h"
#include "harness/library/library_world.h"

enum { NAME = 64, AMOUNT_MOST_MS = 1000000000 };

static const char *const STEP_NAMES[] = {
    [LIBRARY_CALL] = "call",
    [LIBRARY_REQUEST] = "request",
    [LIBRARY_ANSWER] = "answer",
    [LIBRARY_CLOCK] = "clock",
};

static const enum fault_id LIBRARY_FAULTS[LIBRARY_CHOICE_KINDS] = {
    [LIBRARY_PAUSE] = FAULT_ID_PAUSE_CLIENT,
    [LIBRARY_CRASH] = FAULT_ID_KILL_CLIENT,
    [LIBRARY_HOLD_REQUEST] = FAULT_ID_HOLD_REQUEST,
    [LIBRARY_HOLD_REPLY] = FAULT_ID_HOLD_REPLY,
    [LIBRARY_DROP_REQUEST] = FAULT_ID_DROP_REQUEST,
    [LIBRARY_LOSE_REPLY] = FAULT_ID_LOSE_REPLY,
    [LIBRARY_ERROR_REPLY] = FAULT_ID_ERROR_REPLY,
    [LIBRARY_CLOCK_JUMP] = FAULT_ID_CLOCK_JUMP,
    [LIBRARY_CLIENT_CLOCK_JUMP] = FAULT_ID_CLIENT_CLOCK_JUMP,
    [LIBRARY_RESTART] = FAULT_ID_CRASH_SERVER,
    [LIBRARY_RESTART_EMPTY] = FAULT_ID_CRASH_SERVER_EMPTY,
};

const char *library_fault_name(enum library_choice_kind kind) {
    return kind >= LIBRARY_FAULTS_FROM ? FAULT_ROWS[LIBRARY_FAULTS[kind]].name : NULL;
}

enum library_choice_kind library_fault_named(const char *name) {
    enum fault_id id = fault_id_named(name);
    for (enum library_choice_kind kind = LIBRARY_FAULTS_FROM; kind < LIBRARY_CHOICE_KINDS; kind++)
        if (LIBRARY_FAULTS[kind] == id) return kind;
    return LIBRARY_NONE;
}

static enum library_choice_kind kind_named(const char *name) {
    for (enum library_choice_kind kind = LIBRARY_CALL; kind < LIBRARY_FAULTS_FROM; kind++)
        if (strcmp(name, STEP_NAMES[kind]) == 0) return kind;
    return library_fault_named(name);
}

static const char *choice_write(struct library_choice choice, char text[NAME]) {
    const char *fault = library_fault_name(choice.kind), *kind = fault ? fault : STEP_NAMES[choice.kind];
    if (choice.kind == LIBRARY_CLOCK) snprintf(text, NAME, "%s", kind);
    else if (choice.kind == LIBRARY_CALL)
        snprintf(text, NAME, "%s client-%d thread-%d", kind, choice.who / WORKLOAD_THREADS + 1,
                 choice.who % WORKLOAD_THREADS + 1);
    else if (library_strikes_client(choice.kind)) snprintf(text, NAME, "%s client-%d", kind, choice.who + 1);
    else if (library_strikes_server(choice.kind)) snprintf(text, NAME, "%s redis-%d", kind, choice.who + 1);
    else
        snprintf(text, NAME, "%s client-%d link-%d", kind, choice.who / LIBRARY_LINKS + 1,
                 choice.who % LIBRARY_LINKS + 1);
    size_t used = strlen(text);
    if (library_has_amount(choice.kind)) snprintf(text + used, NAME - used, " %lld", (long long)choice.amount);
    return text;
}

const char *library_deviation_write(const struct library_deviation *deviation, char line[LIBRARY_LINE]) {
    char usual[NAME], instead[NAME];
    snprintf(line, LIBRARY_LINE, "before %s %llu: %s", choice_write(deviation->usual, usual),
             (unsigned long long)deviation->step, choice_write(deviation->instead, instead));
    return line;
}

/* "prefix-N" as an index from 0 below `most`; -1: it is something else. */
static int index_read(const char *word, const char *prefix, int most) {
    size_t length = strlen(prefix);
    char *end = NULL;
    long number = word && strncmp(word, prefix, length) == 0 ? strtol(word + length, &end, 10) : 0;
    return end && *end == '\0' && number >= 1 && number <= most ? (int)number - 1 : -1;
}

/* Reads the words of a choice without its amount; *used: how many they were. */
static bool choice_read(char **words, int count, struct library_choice *choice, int *used) {
    choice->kind = count > 0 ? kind_named(words[0]) : LIBRARY_NONE;
    *used = 1;
    if (choice->kind == LIBRARY_NONE || choice->kind == LIBRARY_CLOCK) return choice->kind == LIBRARY_CLOCK;
    int client = count > 1 ? index_read(words[1], "client-", LIBRARY_CLIENTS) : -1;
    *used = 2;
    if (library_strikes_server(choice->kind))
        return (choice->who = count > 1 ? index_read(words[1], "redis-", LIBRARY_NODES) : -1) >= 0;
    if (library_strikes_client(choice->kind)) return (choice->who = client) >= 0;
    bool is_call = choice->kind == LIBRARY_CALL;
    int most = is_call ? WORKLOAD_THREADS : LIBRARY_LINKS;
    int second = count > 2 ? index_read(words[2], is_call ? "thread-" : "link-", most) : -1;
    *used = 3;
    choice->who = client * most + second;
    return client >= 0 && second >= 0;
}

static bool amount_read(const char *word, struct library_choice *choice) {
    char *end = NULL;
    bool jumps = choice->kind == LIBRARY_CLOCK_JUMP || choice->kind == LIBRARY_CLIENT_CLOCK_JUMP;
    choice->amount = word ? strtoll(word, &end, 10) : 0;
    bool whole = end && end != word && *end == '\0' && choice->amount != 0;
    return whole && choice->amount <= AMOUNT_MOST_MS && choice->amount >= (jumps ? -AMOUNT_MOST_MS : 1);
}

bool library_deviation_read(const char *line, struct library_deviation *deviation, const char **reason) {
    enum { WORDS = 12 };
    char copy[LIBRARY_LINE], *words[WORDS] = {NULL}, *rest = NULL, *end = NULL;
    int count = 0, used = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word && count < WORDS; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    *deviation = (struct library_deviation){0};
    *reason = "a line is: before STEP N: STEP, or: before STEP N: FAULT TARGET [MILLISECONDS]";
    if (count < 4 || strcmp(words[0], "before") != 0) return false;
    *reason = "a step is: call client-N thread-N, request client-N link-N, answer client-N link-N, or clock";
    if (!choice_read(words + 1, count - 1, &deviation->usual, &used) || deviation->usual.kind >= LIBRARY_FAULTS_FROM)
        return false;
    int at = 1 + used;
    deviation->step = at < count ? strtoull(words[at], &end, 10) : 0;
    *reason = "the number of the step is missing, and a colon";
    if (deviation->step == 0 || !end || strcmp(end, ":") != 0) return false;
    *reason = "there is no such step or fault, or it has another target";
    if (!choice_read(words + at + 1, count - at - 1, &deviation->instead, &used)) return false;
    at += 1 + used;
    bool wants = library_has_amount(deviation->instead.kind);
    *reason = wants ? "milliseconds are missing or out of range" : "nothing may follow here";
    return at + wants == count && (!wants || amount_read(words[at], &deviation->instead));
}
