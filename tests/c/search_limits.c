/* search_limits: what stands for memory and time of a linearizability check, and what it keeps its account of.
 *
 * Prints one JSON line: for each statement whether it is true. Exit status: 0. */
#include <stdio.h>
#include <string.h>

#include "checkers/linearizability/operations.h"

enum { LOOK_EVERY = 1024, PROCESSES = 100, OBJECTS = 5, LAST_POSITION = UINT32_MAX - 8 };

static const char *separator = "{";

static void say(const char *statement, bool is_true) {
    printf("%s\"%s\": %s", separator, statement, is_true ? "true" : "false");
    separator = ", ";
}

/* Beyond a limit of memory or time it stays beyond it, whatever is given back or asked. */
static void say_limits(void) {
    struct limits limits;
    limits_begin(&limits, 1, 0);
    bool refused = !limits_resize(&limits, NULL, 0, 2);
    say("what is too large is refused", refused && limits_late(&limits) && limits_late(&limits));
    limits_begin(&limits, 0, 1);
    limits.deadline_ns = 1; /* long ago */
    int asked = 1;
    while (asked < 2 * LOOK_EVERY && !limits_late(&limits)) asked++;
    say("the clock is read at every 1024th call", asked == LOOK_EVERY);
    say("what is late stays late", limits_late(&limits) && limits.exceeded[0]);
    limits_begin(&limits, 0, 0);
    for (asked = 0; asked < 2 * LOOK_EVERY && !limits_late(&limits);) asked++;
    say("without a limit nothing is late", asked == 2 * LOOK_EVERY);
}

static enum take_result take(struct operations *operations, enum event_type type, enum operation_kind kind,
                             int64_t process, const char *object) {
    struct operation_event event = {.type = type, .kind = kind, .process = process, .object = object};
    event.value = event.from = OPERATION_NIL;
    return operations_take(operations, &event);
}

/* More processes than the first table has room for, which hold several locks, one of them without a name. */
static bool take_many(struct operations *operations) {
    static const char *const names[OBJECTS] = {"one", "another", NULL, "a-third", "the-last"};
    bool taken = true;
    for (int process = 0; process < PROCESSES; process++)
        for (int object = 0; object < OBJECTS; object++) {
            taken &= take(operations, EVENT_INVOKE, OPERATION_ACQUIRE, -process, names[object]) == TAKEN;
            taken &= take(operations, EVENT_OK, OPERATION_ACQUIRE, -process, names[object]) == TAKEN;
        }
    return taken;
}

static void say_account(void) {
    struct limits limits;
    struct operations operations;
    struct policies policies = {.owned = false};
    limits_begin(&limits, 0, 0);
    operations_begin(&operations, &limits, &policies);
    bool taken = take_many(&operations);
    say("many processes and objects are kept apart", taken && operations.process_count == PROCESSES &&
                                                         operations.object_count == OBJECTS &&
                                                         operations.events == 2 * PROCESSES * OBJECTS);
    bool same = true;
    for (uint32_t each = 0; each < PROCESSES; each++) same &= operations_process(&operations, each) == -(int64_t)each;
    for (uint32_t each = 0; each < OBJECTS; each++)
        same &= operations.objects[each].count == PROCESSES && operations.objects[each].ok == PROCESSES &&
                operations.objects[each].unknown == 0 && operations.objects[each].clock == 4 * PROCESSES;
    say("each object has its operations", same);
    say("memory is in use", limits.used > 0 && limits.peak >= limits.used);
    operations_end(&operations);
    say("all memory is given back", limits.used == 0);
}

/* Positions are numbered in 32 bits, of which the last ones stand for something else. */
static void say_positions(void) {
    struct limits limits;
    struct operations operations;
    struct policies policies = {.owned = false};
    limits_begin(&limits, 0, 0);
    operations_begin(&operations, &limits, &policies);
    bool first = take(&operations, EVENT_INVOKE, OPERATION_ACQUIRE, 1, "lock") == TAKEN;
    operations.objects[0].clock = LAST_POSITION;
    first &= take(&operations, EVENT_INVOKE, OPERATION_ACQUIRE, 2, "lock") == TAKEN;
    say("the last position is given", first && operations.objects[0].list[1].call == LAST_POSITION + 1);
    say("no call comes after it", take(&operations, EVENT_INVOKE, OPERATION_ACQUIRE, 3, "lock") == TAKE_REFUSED &&
                                      strstr(operations.fault, "can be numbered"));
    operations.fault[0] = '\0';
    say("no return comes after it", take(&operations, EVENT_OK, OPERATION_ACQUIRE, 1, "lock") == TAKE_REFUSED &&
                                        strstr(operations.fault, "can be numbered"));
    operations.objects[0].clock = LAST_POSITION;
    bool last = take(&operations, EVENT_OK, OPERATION_ACQUIRE, 1, "lock") == TAKEN;
    say("the last return has its position", last && operations.objects[0].list[0].end == LAST_POSITION + 1);
    operations_end(&operations);
}

int main(void) {
    say_limits();
    say_account();
    say_positions();
    printf("}\n");
    return 0;
}
