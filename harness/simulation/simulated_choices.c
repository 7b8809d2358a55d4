#include "harness/simulation/world.h"

/* The order is that in which strategies draw: what is new comes last. */
static const enum choice_kind FAULTS[] = {
    CHOICE_PAUSE,      CHOICE_PAUSE_BEFORE_SEND, CHOICE_CRASH,        CHOICE_FAILOVER,      CHOICE_STALL_REPLICA,
    CHOICE_CLOCK_JUMP, CHOICE_CLIENT_CLOCK_JUMP, CHOICE_RESTART,      CHOICE_RESTART_EMPTY, CHOICE_LOSE_MESSAGE,
    CHOICE_LOSE_REPLY, CHOICE_DROP_REQUEST,      CHOICE_HOLD_REQUEST, CHOICE_ERROR_REPLY,   CHOICE_DUPLICATE_REQUEST,
    CHOICE_HOLD_REPLY, CHOICE_SERVER_DOWN,       CHOICE_SERVER_SILENT};

const struct choice_space SIMULATED_CHOICES = {
    .steps = 1U << CHOICE_TASK | 1U << CHOICE_LATE | 1U << CHOICE_STREAM | 1U << CHOICE_CLOCK | 1U << CHOICE_QUIET,
    .faults = FAULTS,
    .fault_count = sizeof FAULTS / sizeof FAULTS[0],
    .message = TARGET_TASK,
    .clients = WORLD_CLIENTS,
    .nodes = WORLD_NODES,
    .replicas = WORLD_REPLICAS,
    .late = WORLD_LATE,
    .steps_are = "only client-N, client-N-watchdog, late-N, stream-N, stream-N-replica-2 and clock take steps",
    .targets_are =
        "this fault has another target: client-N for pause-client, pause-client-before-send, kill-client and "
        "client-clock-jump; redis-N for clock-jump, crash-server, crash-server-empty, server-down and server-silent; "
        "redis-N or "
        "redis-N-replica-2 for failover and stall-replica; client-N or client-N-watchdog for all others",
    .has_no_such_fault = "a simulation has no such fault (`lockstorm faults` lists them)",
};
