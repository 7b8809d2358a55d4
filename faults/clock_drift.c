/* clock-drift: a wall clock runs too fast or too slow. */
#include <string.h>

#include "faults/clock.h"

extern const struct fault FAULT_CLOCK_DRIFT;

enum { SLOWEST_PPM = -900000, FASTEST_PPM = 9000000 };

static const struct fault_word OPTIONS[] = {
    {"ppm", NULL, "how much too fast, in us per s (1000000: twice as fast); below 0: too slow"},
    {"keep", "no", "yes: healing gives it the right rate and leaves it where it is"},
    {0},
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    int64_t ppm;
    if (!fault_number(&FAULT_CLOCK_DRIFT, target, "ppm", SLOWEST_PPM, FASTEST_PPM, &ppm, report)) return false;
    return clock_inject(target, 0, ppm, report);
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    bool keep = strcmp(fault_text(&FAULT_CLOCK_DRIFT, target, "keep"), "yes") == 0;
    return clock_heal(target, keep, report);
}

const struct fault FAULT_CLOCK_DRIFT = {
    .name = "clock-drift",
    .summary = "let the wall clock of one server or of one client's host run too fast or too slow",
    .proof = "what it has gained: a server's TIME, and the rest of a key's life; the stamp that a client reads",
    .explanation =
        "The clock is right when the fault comes and gains or loses so much per second. A lease of 30 s on a server that\n"
        "is 10 % fast ends after 27.3 s: the drift that redlock allows for (1 % + 2 ms) is used up. Healing gives it the\n"
        "right rate and steps it to the right time. In virtual time a server notices the end of a blocking pop only when\n"
        "the trial's clock next moves. Monotonic clocks are never touched: that a holder and its server count the seconds\n"
        "differently is exactly this.",
    .source = "Kleppmann 2016, \"The unreliable time of Redlock\"; redis.io, \"Is the algorithm asynchronous?\"",
    .target = "client or server",
    .options = OPTIONS,
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = clock_prove,
    .heal = heal,
};
