#include "harness/library/library_world.h"

/* The order is that in which strategies draw: what is new comes last. */
static const enum choice_kind FAULTS[] = {
    CHOICE_PAUSE,         CHOICE_CRASH,       CHOICE_HOLD_REQUEST, CHOICE_HOLD_REPLY,        CHOICE_DROP_REQUEST,
    CHOICE_LOSE_REPLY,    CHOICE_ERROR_REPLY, CHOICE_CLOCK_JUMP,   CHOICE_CLIENT_CLOCK_JUMP, CHOICE_RESTART,
    CHOICE_RESTART_EMPTY, CHOICE_SERVER_DOWN, CHOICE_SERVER_SILENT};

const struct choice_space HOSTED_CHOICES = {
    .steps = 1U << CHOICE_CALL | 1U << CHOICE_REQUEST | 1U << CHOICE_ANSWER | 1U << CHOICE_CLOCK,
    .faults = FAULTS,
    .fault_count = sizeof FAULTS / sizeof FAULTS[0],
    .message = TARGET_LINK,
    .clients = LIBRARY_CLIENTS,
    .nodes = LIBRARY_NODES,
    .steps_are = "a step is: call client-N thread-N, request client-N link-N, answer client-N link-N, or clock",
    .targets_are =
        "this fault has another target: client-N for pause-client, kill-client and client-clock-jump; redis-N "
        "for clock-jump, crash-server, crash-server-empty, server-down and server-silent; client-N link-N for all "
        "others",
    .has_no_such_fault = "there is no such step, and no such fault in this world (`lockstorm faults` lists them)",
};
