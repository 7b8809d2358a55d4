/* pause-client: the whole process stops, worker and watchdog alike, as in a stop-the-world garbage collection. */
#include <inttypes.h>
#include <stdio.h>

#include "faults/common/process.h"
#include "harness/scheduler/hang_limit.h"

enum { TASKS = 2 /* worker and watchdog */, STAND_LIMIT_MS = 60000, POLL_US = 200 };

/* Of a client that shares its process. */
struct pause_state {
    bool paused;
    int64_t since_ns;
    uint64_t moves[TASKS];
};
_Static_assert(sizeof(struct pause_state) <= FAULT_STATE, "fits the target's state");

static void stop_tasks(const struct fault_target *target, bool stopped) {
    const struct fault_driver *driver = target->driver;
    for (int each = 0; each < TASKS; each++) driver->task_stopped(driver->scheduler, target->task + each, stopped);
}

/* Its watchdog may be about to go on when it is stopped, and has a moment for that; it may also not run at all. */
static bool inject_alone(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct pause_state *pause = (void *)target->state;
    int64_t until_ns = hang_limit_deadline_ns(STAND_LIMIT_MS);
    pause->paused = true;
    stop_tasks(target, true);
    while (!driver->task_stands(driver->scheduler, target->task))
        if (!hang_limit_pause(until_ns, POLL_US)) return fault_fail(report, "it does not reach a place to stop");
    hang_limit_pause(until_ns, POLL_US);
    pause->since_ns = driver->mono_ns(driver->scheduler);
    for (int each = 0; each < TASKS; each++)
        pause->moves[each] = driver->task_moves(driver->scheduler, target->task + each);
    return true;
}

static bool prove_alone(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    const struct pause_state *pause = (void *)target->state;
    int threads, stopped;
    if (!process_count_threads(target->pid, &threads, &stopped))
        return fault_fail(report, "process %d has ended", target->pid);
    if (stopped > 0) return fault_fail(report, "the whole process is stopped, and the other clients in it");
    if (!driver->task_stands(driver->scheduler, target->task)) return fault_fail(report, "it does not stand still");
    for (int each = 0; each < TASKS; each++) {
        uint64_t moves = driver->task_moves(driver->scheduler, target->task + each) - pause->moves[each];
        if (moves > 0) return fault_fail(report, "it went on %" PRIu64 " times", moves);
    }
    snprintf(report->text, sizeof report->text, "it stood for %.3f s, and its process went on",
             (double)(driver->mono_ns(driver->scheduler) - pause->since_ns) / 1e9);
    return true;
}

static bool heal_alone(struct fault_target *target) {
    struct pause_state *pause = (void *)target->state;
    if (pause->paused) stop_tasks(target, false);
    pause->paused = false;
    return true;
}

static bool pause_client_inject(struct fault_target *target, struct fault_report *report) {
    if (target->shares_process) return inject_alone(target, report);
    return process_stop(target, (bool *)target->state, report);
}

static bool pause_client_prove(struct fault_target *target, struct fault_report *report) {
    return target->shares_process ? prove_alone(target, report) : process_prove_stopped(target, report);
}

static bool pause_client_heal(struct fault_target *target, struct fault_report *report) {
    if (target->shares_process) return heal_alone(target);
    return process_continue(target, (bool *)target->state, report);
}

const struct fault FAULT_PAUSE_CLIENT = {
    .row = &FAULT_ROWS[FAULT_ID_PAUSE_CLIENT],
    .explanation =
        "SIGSTOP, confirmed, at a named checkpoint of the client or between two steps; SIGCONT heals. The client's\n"
        "time passes meanwhile: its lease expires and it does not notice. This models a garbage collection, and a\n"
        "container that is throttled or migrated. A client that shares its process with others is paused alone: it\n"
        "reads no reply and no sleep of it ends. Not modelled: a worker that is stuck while its renewal thread runs\n"
        "(stall-worker), and a host that sleeps and whose monotonic clock sleeps with it (suspend-host).",
    .target = "client",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = pause_client_inject,
    .prove = pause_client_prove,
    .heal = pause_client_heal,
};
