/* clock-jump: a wall clock is stepped, as by ntpdate, by an operator or when a virtual machine resumes. */
#include <string.h>

#include "faults/clock/wall_clock.h"

static const int64_t YEAR_MS = 365 * INT64_C(86400000), YEARS = 10;

static const struct fault_option_type OPTIONS[] = {
    {"offset-ms", NULL, "the size of the step, in ms; below 0: backwards"},
    {"keep", "no", "yes: healing leaves the clock as it is"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    int64_t offset_ms, most_ms = YEARS * YEAR_MS;
    if (!fault_option_number(target, "offset-ms", -most_ms, most_ms, &offset_ms, report)) return false;
    return clock_inject(target, offset_ms * CLOCK_NS_PER_MS, 0, report);
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    bool keep = strcmp(fault_option_text(target, "keep"), "yes") == 0;
    return clock_heal(target, keep, report);
}

const struct fault FAULT_CLOCK_JUMP = {
    .name = "clock-jump",
    .summary = "step the wall clock of one server or of one client's host, forwards or backwards",
    .proof = "a server: its TIME, and the remaining life of a key; a client: its time stamp",
    .explanation =
        "A Redis key expires by its server's wall clock: a jump past the lease frees the lock under its holder, a\n"
        "jump backwards extends the lease by as much, and a blocking pop waits longer. A client's wall clock matters\n"
        "where the lock writes or compares its time (fair queue, expiring permits, naive redlock). Healing steps it\n"
        "back. In real time a server's clock can only be set when it was started for that (settable_clocks). Monotonic\n"
        "clocks are not changed. Not modelled: a clock that is slewed (clock-drift), and what a jump does to other\n"
        "programs of the machine.",
    .source = "Kleppmann 2016, \"Making Redlock safe with timing assumptions\"; antirez, news/101; redis-py#415",
    .target = "client or server",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = clock_prove,
    .heal = heal,
};
