#include "faults/clock.h"

#include <stdio.h>
#include <stdlib.h>

#include "faults/ask.h"
#include "faults/process.h"

enum { NS_PER_US = 1000, US_PER_MS = 1000, PPM = 1000000, REAL_SLACK_US = 1000, PROBES = 16 };
enum { GAIN_LIMIT_US = 1000000, GAIN_NAP_US = 5000 };

static const char PROBE[] = "lockstorm:probe:clock";
static const int64_t PROBE_MS = 86400000;
static const char NO_CLOCK[] = "%s goes by the machine's clock: use virtual time, or have the trial start its servers "
                               "under libfaketime (settable_clocks)";

struct clock_fault {
    bool injected;
    int64_t step_ns, drift_ppm, since_ns;
    int probe;                               /* the number of the key that will expire; 0: the server has none */
    int64_t expires_low_us, expires_high_us; /* when, by the server's clock: between these */
};
_Static_assert(sizeof(struct clock_fault) <= FAULT_STATE, "it is kept in a target's state");

/* What a clock showed, and between which stamps it had to. In virtual time they are one. */
struct reading {
    int64_t low_us, shown_us, high_us;
};

static bool is_server(const struct fault_target *target) {
    return target->server >= 0;
}

static struct clock_fault *fault_of(struct fault_target *target) {
    return (struct clock_fault *)(void *)target->state;
}

static bool clock_error(const struct fault_target *target, int64_t *offset_ns, int64_t *drift_ppm) {
    const struct fault_means *means = target->means;
    if (is_server(target)) return means->server_clock_error(means->conductor, target->server, offset_ns, drift_ppm);
    return means->host_clock_error(means->conductor, target->strand, offset_ns, drift_ppm);
}

static bool clock_set(const struct fault_target *target, int64_t offset_ns, int64_t drift_ppm) {
    const struct fault_means *means = target->means;
    if (is_server(target)) return means->server_clock(means->conductor, target->server, offset_ns, drift_ppm);
    return means->host_clock(means->conductor, target->strand, offset_ns, drift_ppm);
}

static int64_t gained_ns(struct fault_target *target) {
    const struct fault_means *means = target->means;
    const struct clock_fault *self = fault_of(target);
    return (means->mono_ns(means->conductor) - self->since_ns) / PPM * self->drift_ppm;
}

/* A server that takes no key - a replica, one without memory - has only its TIME to show. Another fault on the same
 * clock has a key of its own. */
static void probe_set(struct fault_target *target, int64_t step_ns) {
    const struct fault_means *means = target->means;
    struct clock_fault *self = fault_of(target);
    struct fault_report unused;
    struct answer answer = {.missing = true};
    int64_t life_ms = PROBE_MS + llabs(step_ns) / CLOCK_NS_PER_MS;
    for (int number = 1; answer.missing && number <= PROBES; number++) {
        self->expires_low_us = means->server_wall_us(means->conductor, target->server) + life_ms * US_PER_MS;
        if (!ask_good(target->socket, &answer, &unused, "SET %s:%d %s PX %lld NX", PROBE, number, "",
                      (long long)life_ms))
            return;
        self->expires_high_us = means->server_wall_us(means->conductor, target->server) + life_ms * US_PER_MS;
        if (!answer.missing) self->probe = number;
    }
}

bool clock_inject(struct fault_target *target, int64_t step_ns, int64_t drift_ppm, struct fault_report *report) {
    struct clock_fault *self = fault_of(target);
    int64_t offset_ns, before_ppm;
    int threads, stopped;
    if (!process_look(target->pid, &threads, &stopped)) return fault_fail(report, "process %d is gone", target->pid);
    if (!clock_error(target, &offset_ns, &before_ppm)) return fault_fail(report, NO_CLOCK, target->name);
    if (before_ppm + drift_ppm <= -PPM) return fault_fail(report, "its clock would stand, or run backwards");
    if (is_server(target) && !target->service) probe_set(target, step_ns);
    if (!clock_set(target, offset_ns + step_ns, before_ppm + drift_ppm))
        return fault_fail(report, "the clock of %s could not be set", target->name);
    self->step_ns = step_ns;
    self->drift_ppm = drift_ppm;
    self->since_ns = target->means->mono_ns(target->means->conductor);
    self->injected = true;
    return true;
}

static bool read_server(const struct fault_target *target, struct reading *reading, struct fault_report *report) {
    const struct fault_means *means = target->means;
    struct answer answer;
    char *rest;
    reading->low_us = means->server_wall_us(means->conductor, target->server);
    if (target->service) {
        reading->shown_us = means->server_time_us(target->server);
        if (reading->shown_us == INT64_MIN) return fault_fail(report, "%s does not say what time it is", target->name);
    } else {
        if (!ask_good(target->socket, &answer, report, "TIME")) return false;
        reading->shown_us = strtoll(answer.text, &rest, 10) * PPM;
        reading->shown_us += strtoll(rest, NULL, 10);
    }
    reading->high_us = means->server_wall_us(means->conductor, target->server);
    return true;
}

static bool read_host(const struct fault_target *target, struct reading *reading) {
    const struct fault_means *means = target->means;
    int64_t offset_ns, drift_ppm;
    clock_error(target, &offset_ns, &drift_ppm);
    reading->low_us = (means->wall_ns(means->conductor) + offset_ns) / NS_PER_US;
    reading->shown_us = means->host_wall_ns(means->conductor, target->strand) / NS_PER_US;
    reading->high_us = (means->wall_ns(means->conductor) + offset_ns) / NS_PER_US;
    return true;
}

/* Whether the key lives as long as the clock says; one that is gone says nothing. */
static bool probe_agrees(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    const struct clock_fault *self = fault_of(target);
    struct answer answer;
    if (self->probe == 0) return true;
    int64_t before_us = means->server_wall_us(means->conductor, target->server);
    if (!ask_good(target->socket, &answer, report, "PTTL %s:%d", PROBE, self->probe)) return false;
    int64_t after_us = means->server_wall_us(means->conductor, target->server);
    int64_t least_ms = (self->expires_low_us - after_us) / US_PER_MS - 1;
    int64_t most_ms = (self->expires_high_us - before_us) / US_PER_MS + 1;
    if (answer.number < 0 || (answer.number >= least_ms && answer.number <= most_ms)) return true;
    return fault_fail(report, "its TIME is off, and yet a key has %lld ms to live instead of %lld", answer.number,
                      (long long)most_ms);
}

/* By how much a clock is off that shows what it should; false: it does not. *seen: more than the reading is unsure of.
 */
static bool clock_read(struct fault_target *target, int64_t *meant_us, bool *seen, struct fault_report *report) {
    struct clock_fault *self = fault_of(target);
    struct reading reading;
    if (!(is_server(target) ? read_server(target, &reading, report) : read_host(target, &reading))) return false;
    int64_t slack_us = target->means->virtual_time ? 0 : REAL_SLACK_US + reading.high_us - reading.low_us;
    if (target->clock_step_us > 0) slack_us += target->clock_step_us - 1;
    if (reading.shown_us < reading.low_us - slack_us || reading.shown_us > reading.high_us + slack_us)
        return fault_fail(report, "its clock shows %lld us instead of %lld us", (long long)reading.shown_us,
                          (long long)reading.low_us);
    *meant_us = self->injected ? (self->step_ns + gained_ns(target)) / NS_PER_US : 0;
    *seen = llabs(*meant_us) > 2 * slack_us;
    return true;
}

/* A reading is as unsure as it took long, and on a busy machine that is any time. In real time a drift goes on gaining
 * while one looks: what it has gained is seen as soon as it is more than that. */
static bool clock_read_drift(struct fault_target *target, int64_t *meant_us, struct fault_report *report) {
    bool seen, gains = !target->means->virtual_time && fault_of(target)->drift_ppm != 0;
    for (long waited_us = 0;; waited_us += GAIN_NAP_US) {
        if (!clock_read(target, meant_us, &seen, report)) return false;
        if (seen) return true;
        if (!gains || waited_us >= GAIN_LIMIT_US) break;
        process_nap_us(GAIN_NAP_US);
    }
    return fault_fail(report, "%lld us are too little to be seen: nothing was set, or not enough time has passed",
                      (long long)*meant_us);
}

bool clock_prove(struct fault_target *target, struct fault_report *report) {
    struct clock_fault *self = fault_of(target);
    int64_t meant_us = 0;
    if (!clock_read_drift(target, &meant_us, report)) return false;
    if (is_server(target) && !probe_agrees(target, report)) return false;
    snprintf(report->text, sizeof report->text, "its clock reads %+.6f s%s", (double)meant_us / PPM,
             self->probe ? ", and so do its keys" : "");
    return true;
}

bool clock_heal(struct fault_target *target, bool keep, struct fault_report *report) {
    struct clock_fault *self = fault_of(target);
    struct fault_report unused;
    struct answer answer;
    int64_t offset_ns, drift_ppm;
    if (!self->injected) return true;
    self->injected = false;
    clock_error(target, &offset_ns, &drift_ppm);
    int64_t back_ns = keep ? 0 : self->step_ns + gained_ns(target);
    bool set = clock_set(target, offset_ns - back_ns, drift_ppm - self->drift_ppm);
    if (self->probe) ask(target->socket, &answer, &unused, "DEL %s:%d", PROBE, self->probe);
    return set || fault_fail(report, "the clock of %s could not be set", target->name);
}
