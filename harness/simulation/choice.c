#include "harness/simulation/choice.h"

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
};

const char *choice_fault_name(enum choice_kind kind) {
    return (int)kind >= CHOICE_FAULTS_FROM ? FAULT_ROWS[CHOICE_FAULTS[kind]].name : NULL;
}

enum choice_kind choice_fault_named(const char *word) {
    enum fault_id id = fault_id_named(word);
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
        if (CHOICE_FAULTS[kind] == id) return (enum choice_kind)kind;
    return CHOICE_NONE;
}
