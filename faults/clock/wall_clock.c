#include "faults/clock/wall_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "faults/common/process.h"
#include "harness/scheduler/hang_limit.h"

enum { NS_PER_US = 1000, US_PER_MS = 1000, PPM = 1000000, REAL_SLACK_US = 1000, PROBES = 16 };
enum { GAIN_LIMIT_MS = 2000, GAIN_POLL_US = 5000 };

static const char PROBE[] = "lockstorm:probe:clock";
static const int64_t PROBE_MS = 86400000;
/* A clock that is wrong by more would show a time before 1970, or one that has no stamp in ns. */
static const int64_t YEARS_MOST = 50, YEAR_NS = 365 * INT64_C(86400000000000);
static const char NO_CLOCK[] = "%s runs by the machine's clock: use virtual time, or have the trial start its servers "
                               "with clocks that can be set (settable_clocks)";

struct clock_state {
    bool injected;
    int64_t step_ns, drift_ppm, since_ns;
    int probe;                               /* the number of the key that will expire; 0: no key */
    int64_t expires_low_us, expires_high_us; /* bounds of its expiry, by the server's clock */
};
_Static_assert(sizeof(struct clock_state) <= FAULT_STATE, "fits the target's state");

/* What a clock showed, and the bounds between which it should be. In virtual time all three are equal. */
struct clock_reading {
    int64_t low_us, shown_us, high_us;
};

static bool is_server(const struct fault_target *target) {
    return target->server >= 0;
}

static bool clock_error(const struct fault_target *target, int64_t *offset_ns, int64_t *drift_ppm) {
    const struct fault_driver *driver = target->driver;
    if (is_server(target)) return driver->server_clock_error(driver->scheduler, target->server, offset_ns, drift_ppm);
    return driver->host_clock_error(driver->scheduler, target->task, offset_ns, drift_ppm);
}

static bool clock_set(const struct fault_target *target, int64_t offset_ns, int64_t drift_ppm) {
    const struct fault_driver *driver = target->driver;
    if (is_server(target)) return driver->server_clock(driver->scheduler, target->server, offset_ns, drift_ppm);
    return driver->host_clock(driver->scheduler, target->task, offset_ns, drift_ppm);
}

/* Rounded as the scheduler rounds what its clocks gain (shared_page_drift_ns): towards 0, to whole ns. */
static int64_t gained_ns(struct fault_target *target) {
    const struct fault_driver *driver = target->driver;
    const struct clock_state *state = (void *)target->state;
    __int128 lasted_ns = driver->mono_ns(driver->scheduler) - state->since_ns;
    return (int64_t)(lasted_ns * state->drift_ppm / PPM);
}

/* A server that accepts no key - a replica, one without memory - shows only its TIME. Another fault on the same clock
 * has a key of its own. */
static void probe_set(struct fault_target *target, int64_t step_ns) {
    const struct fault_driver *driver = target->driver;
    struct clock_state *state = (void *)target->state;
    struct admin_reply reply = {.missing = true};
    int64_t life_ms = PROBE_MS + llabs(step_ns) / CLOCK_NS_PER_MS;
    for (int number = 1; reply.missing && number <= PROBES; number++) {
        state->expires_low_us = driver->server_wall_us(driver->scheduler, target->server) + life_ms * US_PER_MS;
        if (!admin_command_ok(target->socket, &reply, NULL, "SET %s:%d %s PX %lld NX", PROBE, number, "",
                              (long long)life_ms))
            return;
        state->expires_high_us = driver->server_wall_us(driver->scheduler, target->server) + life_ms * US_PER_MS;
        if (!reply.missing) state->probe = number;
    }
}

static bool clock_can_step(int64_t offset_ns, int64_t step_ns) {
    int64_t sum_ns, most_ns = YEARS_MOST * YEAR_NS;
    return !__builtin_add_overflow(offset_ns, step_ns, &sum_ns) && sum_ns >= -most_ns && sum_ns <= most_ns;
}

bool clock_inject(struct fault_target *target, int64_t step_ns, int64_t drift_ppm, struct fault_report *report) {
    struct clock_state *state = (void *)target->state;
    int64_t offset_ns, before_ppm;
    int threads, stopped;
    if (!process_count_threads(target->pid, &threads, &stopped))
        return fault_fail(report, "process %d has ended", target->pid);
    if (!clock_error(target, &offset_ns, &before_ppm)) return fault_fail(report, NO_CLOCK, target->name);
    if (before_ppm + drift_ppm <= -PPM) return fault_fail(report, "its clock would stop or run backwards");
    if (!clock_can_step(offset_ns, step_ns))
        return fault_fail(report, "its clock would be more than %lld years wrong", (long long)YEARS_MOST);
    if (is_server(target) && !target->service) probe_set(target, step_ns);
    if (!clock_set(target, offset_ns + step_ns, before_ppm + drift_ppm))
        return fault_fail(report, "the clock of %s could not be set", target->name);
    state->step_ns = step_ns;
    state->drift_ppm = drift_ppm;
    state->since_ns = target->driver->mono_ns(target->driver->scheduler);
    state->injected = true;
    return true;
}

static bool read_server(const struct fault_target *target, struct clock_reading *reading, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct admin_reply reply;
    char *rest;
    reading->low_us = driver->server_wall_us(driver->scheduler, target->server);
    if (target->service) {
        reading->shown_us = driver->server_time_us(target->server);
        if (reading->shown_us == INT64_MIN) return fault_fail(report, "%s does not report its time", target->name);
    } else {
        if (!admin_command_ok(target->socket, &reply, report, "TIME")) return false;
        reading->shown_us = strtoll(reply.text, &rest, 10) * PPM;
        reading->shown_us += strtoll(rest, NULL, 10);
    }
    reading->high_us = driver->server_wall_us(driver->scheduler, target->server);
    return true;
}

static bool read_host(const struct fault_target *target, struct clock_reading *reading) {
    const struct fault_driver *driver = target->driver;
    int64_t offset_ns, drift_ppm;
    clock_error(target, &offset_ns, &drift_ppm);
    reading->low_us = (driver->wall_ns(driver->scheduler) + offset_ns) / NS_PER_US;
    reading->shown_us = driver->host_wall_ns(driver->scheduler, target->task) / NS_PER_US;
    reading->high_us = (driver->wall_ns(driver->scheduler) + offset_ns) / NS_PER_US;
    return true;
}

/* Whether the key's remaining life agrees with the clock; a key that is gone proves nothing. */
static bool probe_agrees(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    const struct clock_state *state = (void *)target->state;
    struct admin_reply reply;
    if (state->probe == 0) return true;
    int64_t before_us = driver->server_wall_us(driver->scheduler, target->server);
    if (!admin_command_ok(target->socket, &reply, report, "PTTL %s:%d", PROBE, state->probe)) return false;
    int64_t after_us = driver->server_wall_us(driver->scheduler, target->server);
    int64_t least_ms = (state->expires_low_us - after_us) / US_PER_MS - 1;
    int64_t most_ms = (state->expires_high_us - before_us) / US_PER_MS + 1;
    if (reply.number < 0 || (reply.number >= least_ms && reply.number <= most_ms)) return true;
    return fault_fail(report, "its TIME is off, but a key has %lld ms to live instead of %lld", reply.number,
                      (long long)most_ms);
}

/* Checks that a clock shows what it should; *meant_us is this fault's share. *seen: that is more than the uncertainty
 * of the reading. */
static bool clock_read(struct fault_target *target, int64_t *meant_us, bool *seen, struct fault_report *report) {
    struct clock_state *state = (void *)target->state;
    struct clock_reading reading;
    if (!(is_server(target) ? read_server(target, &reading, report) : read_host(target, &reading))) return false;
    int64_t slack_us = target->driver->virtual_time ? 0 : REAL_SLACK_US + reading.high_us - reading.low_us;
    if (target->clock_step_us > 0) slack_us += target->clock_step_us - 1;
    if (reading.shown_us < reading.low_us - slack_us || reading.shown_us > reading.high_us + slack_us)
        return fault_fail(report, "its clock shows %lld us instead of %lld us", (long long)reading.shown_us,
                          (long long)reading.low_us);
    *meant_us = state->injected ? (state->step_ns + gained_ns(target)) / NS_PER_US : 0;
    *seen = llabs(*meant_us) > 2 * slack_us;
    return true;
}

/* The uncertainty of a reading is its duration, which has no limit on a busy machine. In real time a drift keeps
 * growing meanwhile: it is polled until it exceeds the uncertainty. */
static bool clock_read_drift(struct fault_target *target, int64_t *meant_us, struct fault_report *report) {
    const struct clock_state *state = (void *)target->state;
    bool seen, gains = !target->driver->virtual_time && state->drift_ppm != 0;
    int64_t until_ns = hang_limit_deadline_ns(GAIN_LIMIT_MS);
    do {
        if (!clock_read(target, meant_us, &seen, report)) return false;
        if (seen) return true;
    } while (gains && hang_limit_pause(until_ns, GAIN_POLL_US));
    return fault_fail(report, "%lld us are too little to be seen: nothing was set, or not enough time has passed",
                      (long long)*meant_us);
}

bool clock_prove(struct fault_target *target, struct fault_report *report) {
    struct clock_state *state = (void *)target->state;
    int64_t meant_us = 0;
    if (!clock_read_drift(target, &meant_us, report)) return false;
    if (is_server(target) && !probe_agrees(target, report)) return false;
    snprintf(report->text, sizeof report->text, "its clock reads %+.6f s%s", (double)meant_us / (double)PPM,
             state->probe ? ", and so do its keys" : "");
    return true;
}

bool clock_heal(struct fault_target *target, struct fault_report *report) {
    struct clock_state *state = (void *)target->state;
    int64_t offset_ns, drift_ppm;
    bool keep = strcmp(fault_option_text(target, "keep"), "yes") == 0;
    if (!state->injected) return true;
    state->injected = false;
    clock_error(target, &offset_ns, &drift_ppm);
    int64_t back_ns = keep ? 0 : state->step_ns + gained_ns(target);
    bool set = clock_set(target, offset_ns - back_ns, drift_ppm - state->drift_ppm);
    if (state->probe) admin_command(target->socket, NULL, NULL, "DEL %s:%d", PROBE, state->probe);
    return set || fault_fail(report, "the clock of %s could not be set", target->name);
}
