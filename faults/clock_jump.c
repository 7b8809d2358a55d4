/* clock-jump: a wall clock is stepped, as ntpdate, an operator or a virtual machine that wakes up does it. */
#include <string.h>

#include "faults/clock.h"

extern const struct fault FAULT_CLOCK_JUMP;

static const int64_t YEAR_MS = 365 * INT64_C(86400000), YEARS = 10;

static const struct fault_word OPTIONS[] = {
    {"offset-ms", NULL, "how far, in ms; below 0: backwards"},
    {"keep", "no", "yes: healing leaves the clock where it is"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    int64_t offset_ms, most_ms = YEARS * YEAR_MS;
    if (!fault_number(&FAULT_CLOCK_JUMP, target, "offset-ms", -most_ms, most_ms, &offset_ms, report)) return false;
    return clock_inject(target, offset_ms * CLOCK_NS_PER_MS, 0, report);
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    bool keep = strcmp(fault_text(&FAULT_CLOCK_JUMP, target, "keep"), "yes") == 0;
    return clock_heal(target, keep, report);
}

const struct fault FAULT_CLOCK_JUMP = {
    .name = "clock-jump",
    .summary = "step the wall clock of one server or of one client's host, forwards or backwards",
    .proof = "a server: its TIME, and the rest of a key's life; a client: the stamp that it reads",
    .explanation =
        "A Redis key expires by its server's wall clock: a jump past the lease frees the lock under its holder, a jump\n"
        "backwards makes the lease longer by as much, and a blocking pop sits longer. A client's wall clock matters where\n"
        "the lock writes or compares its time (fair queue, expiring permits, naive redlock). Healing steps it back.\n"
        "In real time a server's clock can only be set when it was started under libfaketime. Monotonic clocks are never\n"
        "touched. It does not model a clock that is slewed (clock-drift), nor a whole machine's worth of other programs.",
    .source = "Kleppmann 2016, \"Making Redlock safe with timing assumptions\"; antirez, news/101; redis-py#415",
    .target = "client or server",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = clock_prove,
    .heal = heal,
};
