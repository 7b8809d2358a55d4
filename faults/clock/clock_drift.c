/* clock-drift: a wall clock runs too fast or too slow. */
#include "faults/clock/wall_clock.h"

enum { SLOWEST_PPM = -900000, FASTEST_PPM = 9000000 };

static bool clock_drift_inject(struct fault_target *target, struct fault_report *report) {
    int64_t ppm;
    if (!fault_option_number(target, "ppm", SLOWEST_PPM, FASTEST_PPM, &ppm, report)) return false;
    return clock_inject(target, 0, ppm, report);
}

const struct fault FAULT_CLOCK_DRIFT = {
    .row = &FAULT_ROWS[FAULT_ID_CLOCK_DRIFT],
    .explanation =
        "The clock is right when the fault is injected and gains or loses from then on at the given rate. A lease of\n"
        "30 s on a server that is 10 % fast ends after 27.3 s: the drift that redlock allows for (1 % + 2 ms) is\n"
        "used up. Healing restores the rate and steps the clock to the right time. In virtual time a server notices\n"
        "the end of a blocking pop only when the trial's clock next moves. Monotonic clocks are not changed: the\n"
        "fault is exactly that a holder and its server count the seconds differently.",
    .target = "client or server",
    .options = FAULT_OPTIONS({"ppm", NULL, "the rate error, in us per s (1000000: twice as fast); below 0: too slow"},
                             {"keep", "no", "yes: healing restores the rate and leaves the clock's error"}),
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = clock_drift_inject,
    .prove = clock_prove,
    .heal = clock_heal,
};
