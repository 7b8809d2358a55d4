#include "harness/search/choice.h"

#include <stddef.h>

#include "faults/names/fault_rows.h"

static const enum fault_id CHOICE_FAULTS[CHOICE_KINDS] = {
    [CHOICE_PAUSE] = FAULT_ID_PAUSE_CLIENT,
    [CHOICE_PAUSE_BEFORE_SEND] = FAULT_ID_PAUSE_CLIENT_BEFORE_SEND,
    [CHOICE_CRASH] = FAULT_ID_KILL_CLIENT,
    [CHOICE_FAILOVER] = FAULT_ID_FAILOVER,
    [CHOICE_STALL_REPLICA] = FAULT_ID_STALL_REPLICA,
    [CHOICE_CLOCK_JUMP] = FAULT_ID_CLOCK_JUMP,
    [CHOICE_CLIENT_CLOCK_JUMP] = FAULT_ID_CLIENT_CLOCK_JUMP,
    [CHOICE_RESTART] = FAULT_ID_CRASH_SERVER,
    [CHOICE_RESTART_EMPTY] = FAULT_ID_CRASH_SERVER_EMPTY,
    [CHOICE_LOSE_MESSAGE] = FAULT_ID_DROP_MESSAGE,
    [CHOICE_LOSE_REPLY] = FAULT_ID_LOSE_REPLY,
    [CHOICE_DROP_REQUEST] = FAULT_ID_DROP_REQUEST,
    [CHOICE_HOLD_REQUEST] = FAULT_ID_HOLD_REQUEST,
    [CHOICE_ERROR_REPLY] = FAULT_ID_ERROR_REPLY,
    [CHOICE_DUPLICATE_REQUEST] = FAULT_ID_DUPLICATE_REQUEST,
    [CHOICE_HOLD_REPLY] = FAULT_ID_HOLD_REPLY,
};

const char *choice_fault_name(enum choice_kind kind) {
    return choice_is_fault(kind) ? FAULT_ROWS[CHOICE_FAULTS[kind]].name : NULL;
}

enum choice_kind choice_fault_named(const struct choice_space *space, const char *word) {
    enum fault_id id = fault_id_named(word);
    for (int each = 0; each < space->fault_count; each++)
        if (CHOICE_FAULTS[space->faults[each]] == id) return space->faults[each];
    return CHOICE_NONE;
}

enum choice_target choice_target(const struct choice_space *space, enum choice_kind kind) {
    switch (kind) {
    case CHOICE_TASK: return TARGET_TASK;
    case CHOICE_LATE: return TARGET_LATE;
    case CHOICE_STREAM: return TARGET_REPLICA;
    case CHOICE_CALL: return TARGET_THREAD;
    case CHOICE_REQUEST:
    case CHOICE_ANSWER: return TARGET_LINK;
    case CHOICE_NONE:
    case CHOICE_CLOCK:
    case CHOICE_QUIET: return TARGET_NOTHING;
    default: break;
    }
    if (choice_strikes_client(kind)) return TARGET_CLIENT;
    if (choice_strikes_node(kind)) return TARGET_NODE;
    return choice_strikes_replica(kind) ? TARGET_REPLICA : space->message;
}

/* How many of these a client has; 0: they belong to no client. */
static int units_of(enum choice_target target) {
    static const int UNITS[] = {[TARGET_CLIENT] = 1,
                                [TARGET_TASK] = TASKS_PER_CLIENT,
                                [TARGET_THREAD] = THREADS_PER_CLIENT,
                                [TARGET_LINK] = LINKS_PER_CLIENT,
                                [TARGET_REPLICA] = 0};
    return UNITS[target];
}

int choice_client(const struct choice_space *space, struct choice choice) {
    int units = units_of(choice_target(space, choice.kind));
    return units > 0 ? choice.who / units : -1;
}

int choice_chain(const struct choice_space *space, struct choice step) {
    return step.kind == CHOICE_TASK ? step.who : choice_client(space, step);
}

struct choice choice_moved_up(const struct choice_space *space, struct choice choice) {
    choice.who -= units_of(choice_target(space, choice.kind));
    return choice;
}
