#include "harness/search/choice.h"

#include <stddef.h>

#include "faults/names/fault_rows.h"

static const struct {
    enum fault_id fault;
    enum choice_target target;
    bool has_amount;
} CHOICES[CHOICE_KINDS] = {
    [CHOICE_TASK] = {.target = TARGET_TASK},
    [CHOICE_LATE] = {.target = TARGET_LATE},
    [CHOICE_STREAM] = {.target = TARGET_REPLICA},
    [CHOICE_CALL] = {.target = TARGET_THREAD},
    [CHOICE_REQUEST] = {.target = TARGET_LINK},
    [CHOICE_ANSWER] = {.target = TARGET_LINK},
    [CHOICE_PAUSE] = {FAULT_ID_PAUSE_CLIENT, TARGET_CLIENT, true},
    [CHOICE_PAUSE_BEFORE_SEND] = {FAULT_ID_PAUSE_CLIENT_BEFORE_SEND, TARGET_CLIENT, true},
    [CHOICE_CRASH] = {FAULT_ID_KILL_CLIENT, TARGET_CLIENT, false},
    [CHOICE_FAILOVER] = {FAULT_ID_FAILOVER, TARGET_REPLICA, false},
    [CHOICE_STALL_REPLICA] = {FAULT_ID_STALL_REPLICA, TARGET_REPLICA, true},
    [CHOICE_CLOCK_JUMP] = {FAULT_ID_CLOCK_JUMP, TARGET_NODE, true},
    [CHOICE_CLIENT_CLOCK_JUMP] = {FAULT_ID_CLIENT_CLOCK_JUMP, TARGET_CLIENT, true},
    [CHOICE_RESTART] = {FAULT_ID_CRASH_SERVER, TARGET_NODE, false},
    [CHOICE_RESTART_EMPTY] = {FAULT_ID_CRASH_SERVER_EMPTY, TARGET_NODE, false},
    [CHOICE_LOSE_MESSAGE] = {FAULT_ID_DROP_MESSAGE, TARGET_MESSAGE, false},
    [CHOICE_LOSE_REPLY] = {FAULT_ID_LOSE_REPLY, TARGET_MESSAGE, false},
    [CHOICE_DROP_REQUEST] = {FAULT_ID_DROP_REQUEST, TARGET_MESSAGE, false},
    [CHOICE_HOLD_REQUEST] = {FAULT_ID_HOLD_REQUEST, TARGET_MESSAGE, true},
    [CHOICE_ERROR_REPLY] = {FAULT_ID_ERROR_REPLY, TARGET_MESSAGE, false},
    [CHOICE_DUPLICATE_REQUEST] = {FAULT_ID_DUPLICATE_REQUEST, TARGET_MESSAGE, false},
    [CHOICE_HOLD_REPLY] = {FAULT_ID_HOLD_REPLY, TARGET_MESSAGE, true},
    [CHOICE_SERVER_DOWN] = {FAULT_ID_SERVER_DOWN, TARGET_NODE, false},
    [CHOICE_SERVER_SILENT] = {FAULT_ID_SERVER_SILENT, TARGET_NODE, false},
};

bool choice_strikes(enum choice_kind kind, enum choice_target target) {
    return CHOICES[kind].target == target;
}

bool choice_has_amount(enum choice_kind kind) {
    return CHOICES[kind].has_amount;
}

const char *choice_fault_name(enum choice_kind kind) {
    return choice_is_fault(kind) ? FAULT_ROWS[CHOICES[kind].fault].name : NULL;
}

enum choice_kind choice_fault_named(const struct choice_space *space, const char *word) {
    enum fault_id id = fault_id_named(word);
    for (int each = 0; each < space->fault_count; each++)
        if (CHOICES[space->faults[each]].fault == id) return space->faults[each];
    return CHOICE_NONE;
}

enum choice_target choice_target(const struct choice_space *space, enum choice_kind kind) {
    enum choice_target target = CHOICES[kind].target;
    return target == TARGET_MESSAGE ? space->message : target;
}

int choice_units(enum choice_target target) {
    static const int UNITS[] = {[TARGET_CLIENT] = 1,
                                [TARGET_TASK] = TASKS_PER_CLIENT,
                                [TARGET_THREAD] = THREADS_PER_CLIENT,
                                [TARGET_LINK] = LINKS_PER_CLIENT,
                                [TARGET_MESSAGE] = 0};
    return UNITS[target];
}

int choice_client(const struct choice_space *space, struct choice choice) {
    int units = choice_units(choice_target(space, choice.kind));
    return units > 0 ? choice.who / units : -1;
}

int choice_chain(const struct choice_space *space, struct choice step) {
    return step.kind == CHOICE_TASK ? step.who : choice_client(space, step);
}
