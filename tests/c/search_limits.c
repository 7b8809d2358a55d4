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
    while (asked < 2 * (int)LOOK_EVERY && !limits_late(&limits)) asked++;
    say("the clock is read at every 1024th call", asked == (int)LOOK_EVERY);
    say("what is late stays late", limits_late(&limits) && limits.exceeded[0]);
    limits_begin(&limits, 0, 0);
    for (asked = 0; asked < 2 * (int)LOOK_EVERY && !limits_late(&limits);) asked++;
    say("without a limit nothing is late", asked == 2 * (int)LOOK_EVERY);
}

static enum take_result take(struct operations *operations, enum event_type type, enum operation_kind kind,
                             int64_t process, const char *object) {
    struct operation_event event = {.type = type, .kind = kind, .process = process, .object = object};
    event.value = event.from = OPERATION_NIL;
    return operations_take(operations, &event);
}

static const char *const names[OBJECTS] = {"one", "another", NULL, "a-third", "the-last"};

/* More processes than the first table has room for, which hold several locks, one of them without a name. All of them
 * come back to each lock, so one that the table has lost would be there twice. */
static enum take_result take_many(struct operations *operations) {
    for (int object = 0; object < (int)OBJECTS; object++)
        for (int process = 0; process < (int)PROCESSES; process++)
            for (int event = 0; event < 2; event++) {
                enum event_type type = event == 0 ? EVENT_INVOKE : EVENT_OK;
                enum take_result result = take(operations, type, OPERATION_ACQUIRE, -process, names[object]);
                if (result != TAKEN) return result;
            }
    return TAKEN;
}

static void say_account(void) {
    struct limits limits;
    struct operations operations;
    struct policies policies = {.owned = false};
    limits_begin(&limits, 0, 0);
    operations_begin(&operations, &limits, &policies);
    bool taken = take_many(&operations) == TAKEN;
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

/* However much memory there is: all is taken, or the limit is named; what was not taken leaves nothing behind. */
static void say_memory(void) {
    enum { MOST = 1 << 17, STEP = 13 };
    struct policies policies = {.leases = true};
    bool right = true, refused = false, taken = false;
    for (uint64_t memory = 1; memory < MOST; memory += STEP) {
        struct limits limits;
        struct operations operations;
        limits_begin(&limits, memory, 0);
        operations_begin(&operations, &limits, &policies);
        enum take_result result = take_many(&operations);
        right &= result == (limits.exceeded[0] ? TAKE_FULL : TAKEN) && limits.peak <= memory;
        refused |= result == TAKE_FULL;
        taken |= result == TAKEN;
        operations_end(&operations);
        right &= limits.used == 0;
    }
    say("at every limit all is taken or the limit is named", right && refused && taken);
}

/* What a process holds of one lock is not what it holds of another. */
static void say_holds(void) {
    struct limits limits;
    struct operations operations;
    struct policies policies = {.failed_release = RELEASE_READ_RELEASED, .leases = true};
    limits_begin(&limits, 0, 0);
    operations_begin(&operations, &limits, &policies);
    for (int each = 0; each < 3; each++) {
        take(&operations, EVENT_INVOKE, OPERATION_ACQUIRE, 1, names[each]);
        take(&operations, EVENT_OK, OPERATION_ACQUIRE, 1, names[each]);
    }
    for (int each = 2; each >= 0; each--) {
        take(&operations, EVENT_INVOKE, OPERATION_RENEW, 1, names[each]);
        take(&operations, EVENT_OK, OPERATION_RENEW, 1, names[each]);
        take(&operations, EVENT_INVOKE, OPERATION_RELEASE, 1, names[each]);
        take(&operations, EVENT_FAIL, OPERATION_RELEASE, 1, names[each]);
    }
    bool same = true;
    for (int each = 0; each < 3; each++) {
        const struct concurrent_object *object = &operations.objects[each];
        const struct operation *grant = &object->list[0], *lease = &object->list[1], *release = &object->list[3];
        same &= object->count == 4 && grant->outcome == OUTCOME_OK && release->outcome == OUTCOME_OK;
        same &= lease->kind == OPERATION_RELEASE && lease->outcome == OUTCOME_UNKNOWN && lease->end == OPERATION_OPEN;
        same &= lease->call == object->list[2].call + 1 && object->ok == 2;
    }
    say("a failed release is that of a holder, and the lease was confirmed at the renewal's call", same);
    take(&operations, EVENT_INVOKE, OPERATION_RELEASE, 1, names[0]);
    take(&operations, EVENT_FAIL, OPERATION_RELEASE, 1, names[0]);
    say("it is released once", operations.objects[0].list[4].outcome == OUTCOME_REFUSED);
    operations_end(&operations);
}

/* A process may be gone, and another may have its number. */
static void say_under_way(void) {
    struct limits limits;
    struct operations operations;
    struct policies policies = {.owned = true};
    enum operation_kind kind = OPERATION_KIND_COUNT;
    limits_begin(&limits, 0, 0);
    operations_begin(&operations, &limits, &policies);
    say("nothing is under way before the first event", !operations_under_way(&operations, 7, &kind));
    operations_end_process(&operations, 7);
    take(&operations, EVENT_INVOKE, OPERATION_ACQUIRE, 7, "lock");
    take(&operations, EVENT_OK, OPERATION_ACQUIRE, 7, "lock");
    say("nothing is under way between two operations", !operations_under_way(&operations, 7, &kind));
    say("nor is it of a process that did nothing", !operations_under_way(&operations, 8, &kind));
    operations_end_process(&operations, 8);
    take(&operations, EVENT_INVOKE, OPERATION_RENEW, 7, "lock");
    say("what is under way is known", operations_under_way(&operations, 7, &kind) && kind == OPERATION_RENEW);
    take(&operations, EVENT_OK, OPERATION_RENEW, 7, "lock");
    say("a renewal that was answered counts", operations.objects[0].ok == 2 && operations.objects[0].unknown == 0);
    take(&operations, EVENT_INVOKE, OPERATION_RELEASE, 7, "lock");
    operations_end_process(&operations, 7);
    bool gone = !operations_under_way(&operations, 7, &kind);
    gone &= take(&operations, EVENT_INVOKE, OPERATION_ACQUIRE, 7, "lock") == TAKEN;
    say("another process may use its number", gone && operations.objects[0].list[2].end == OPERATION_OPEN);
    operations_end(&operations);
}

/* Positions are numbered in 32 bits. The last ones stand for something else. */
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
    say_memory();
    say_holds();
    say_under_way();
    say_positions();
    printf("}\n");
    return 0;
}
