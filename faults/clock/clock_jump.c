/* clock-jump and client-clock-jump: a wall clock is stepped, as by ntpdate, by an operator or when a virtual machine
 * resumes. */
#include "faults/clock/wall_clock.h"

static const int64_t YEAR_MS = 365 * INT64_C(86400000), YEARS = 10;

static const struct fault_option_type OPTIONS[] = {
    {"offset-ms", NULL, "the size of the step, in ms; below 0: backwards"},
    {"keep", "no", "yes: healing leaves the clock as it is"},
    {0},
};

static bool clock_jump_inject(struct fault_target *target, struct fault_report *report) {
    int64_t offset_ms, most_ms = YEARS * YEAR_MS;
    if (!fault_option_number(target, "offset-ms", -most_ms, most_ms, &offset_ms, report)) return false;
    return clock_inject(target, offset_ms * CLOCK_NS_PER_MS, 0, report);
}

/* What a server's and a client's clock have in common. */
#define CLOCK_JUMP                                                                                                     \
    .options = OPTIONS, .times = FAULT_VIRTUAL | FAULT_REAL, .inject = clock_jump_inject, .prove = clock_prove,        \
    .heal = clock_heal

const struct fault FAULT_CLOCK_JUMP = {
    .row = &FAULT_ROWS[FAULT_ID_CLOCK_JUMP],
    .explanation =
        "A Redis key expires by its server's wall clock: a jump past the lease frees the lock under its holder, a\n"
        "jump backwards extends the lease by as much, and a blocking pop waits longer. Healing steps the clock back.\n"
        "In real time a server's clock can only be set when it was started for that (settable_clocks). Monotonic\n"
        "clocks are not changed. Not modelled: a clock that is slewed (clock-drift), and what a jump does to other\n"
        "programs of the machine.",
    .target = "server",
    CLOCK_JUMP,
};

const struct fault FAULT_CLIENT_CLOCK_JUMP = {
    .row = &FAULT_ROWS[FAULT_ID_CLIENT_CLOCK_JUMP],
    .explanation =
        "A client's wall clock matters where the lock writes or compares its time (fair queue, expiring permits,\n"
        "naive redlock). Healing steps the clock back. Monotonic clocks are not changed. Not modelled: a clock that\n"
        "is slewed (clock-drift), and what a jump does to other programs of the machine.",
    .target = "client",
    CLOCK_JUMP,
};
