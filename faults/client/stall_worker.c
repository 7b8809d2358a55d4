/* stall-worker: the worker stands still while its watchdog runs on.
 *
 * Whether the watchdog renews is read at the server: a key with the same content now expires later than before. Which
 * keys are locks need not be known. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "faults/common/process.h"
#include "harness/scheduler/hang_limit.h"

enum {
    LEASES = 8,
    STAND_LIMIT_MS = 60000,
    POLL_US = 200,
    SEEN_POLL_US = 10000,
    LEASES_LIMIT_MS = 500,
    SEEN_LIMIT_MS = 5000
};

/* A key that will expire: a digest of its name and content, and when, by the server's wall clock. */
struct seen_lease {
    char digest[41];
    int64_t expires_ms;
};

struct stall_worker_state {
    bool stalled;
    int lease_count;
    int64_t since_ns;
    uint64_t moves, watchdog_moves;
    struct seen_lease leases[LEASES];
};
_Static_assert(sizeof(struct stall_worker_state) <= FAULT_STATE, "fits the target's state");

static const char LEASES_SCRIPT[] =
    "local said, now = {}, redis.call('time') "
    "for _, key in ipairs(redis.call('scan', '0', 'count', '100')[2]) do "
    "local rest = redis.call('pttl', key) "
    "if rest > 0 then said[#said + 1] = redis.sha1hex(key .. redis.call('dump', key)) .. "
    "string.format(' %.0f', now[1] * 1000 + math.floor(now[2] / 1000) + rest) end end return said";

/* Reads the keys of the client's first node that will expire; returns how many, 0 when the node does not answer. */
static int leases_read(const struct fault_target *target, struct seen_lease leases[LEASES]) {
    struct admin_reply reply;
    int count = 0;
    if (!target->socket ||
        !admin_command_within(target->socket, LEASES_LIMIT_MS, &reply, NULL, "EVAL %s 0", LEASES_SCRIPT))
        return 0;
    if (reply.error) return 0;
    for (char *line = reply.text; *line && count < LEASES; line += strcspn(line, "\n") + 1) {
        count += sscanf(line, "%40s %" SCNd64, leases[count].digest, &leases[count].expires_ms) == 2;
        if (!strchr(line, '\n')) break;
    }
    return count;
}

/* How many of the remembered leases have been extended, and how many are unchanged. */
static void leases_compare(const struct fault_target *target, const struct stall_worker_state *stall, int *longer,
                           int *same) {
    struct seen_lease now[LEASES];
    int count = leases_read(target, now);
    *longer = *same = 0;
    for (int each = 0; each < stall->lease_count; each++) {
        for (int other = 0; other < count; other++) {
            if (strcmp(stall->leases[each].digest, now[other].digest) != 0) continue;
            *longer += now[other].expires_ms > stall->leases[each].expires_ms;
            *same += now[other].expires_ms == stall->leases[each].expires_ms;
        }
    }
}

static bool stall_worker_inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct stall_worker_state *stall = (void *)target->state;
    int threads, stopped;
    if (!process_count_threads(target->pid, &threads, &stopped))
        return fault_fail(report, "process %d has ended", target->pid);
    stall->stalled = true;
    driver->task_stopped(driver->scheduler, target->task, true);
    int64_t until_ns = hang_limit_deadline_ns(STAND_LIMIT_MS);
    while (!driver->task_stands(driver->scheduler, target->task))
        if (!hang_limit_pause(until_ns, POLL_US))
            return fault_fail(report, "its worker does not reach a place to stop");
    stall->since_ns = driver->mono_ns(driver->scheduler);
    stall->moves = driver->task_moves(driver->scheduler, target->task);
    stall->watchdog_moves = driver->task_moves(driver->scheduler, target->task + 1);
    stall->lease_count = leases_read(target, stall->leases);
    return true;
}

/* A watchdog that has run may have its renewal still on the way: then it is waited for. */
static bool renewals_seen(const struct fault_target *target, const struct stall_worker_state *stall, uint64_t moves,
                          char *seen, size_t size) {
    int longer = 0, same = 0;
    /* In real time a lock may have a thread of its own that is no task. */
    if (moves == 0 && !target->driver->virtual_time) leases_compare(target, stall, &longer, &same);
    int64_t until_ns = hang_limit_deadline_ns(SEEN_LIMIT_MS);
    if (moves > 0) do
            leases_compare(target, stall, &longer, &same);
        while (longer == 0 && same > 0 && hang_limit_pause(until_ns, SEEN_POLL_US));
    if (moves == 0 && longer == 0) snprintf(seen, size, "nothing was renewed meanwhile");
    else if (longer > 0)
        snprintf(seen, size, "its watchdog renewed: %d of %d leases extended", longer, stall->lease_count);
    else if (same > 0) snprintf(seen, size, "its watchdog ran and renewed nothing");
    else snprintf(seen, size, "its watchdog ran and had no lease to renew");
    return moves == 0 || longer > 0 || same == 0;
}

static bool stall_worker_prove(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    const struct stall_worker_state *stall = (void *)target->state;
    int threads, stopped;
    char seen[128];
    if (!process_count_threads(target->pid, &threads, &stopped))
        return fault_fail(report, "process %d has ended", target->pid);
    if (stopped > 0)
        return fault_fail(report, "%d of its %d threads are in state T: the whole process is stopped", stopped,
                          threads);
    uint64_t moves = driver->task_moves(driver->scheduler, target->task) - stall->moves;
    if (moves > 0) return fault_fail(report, "its worker ran %" PRIu64 " times", moves);
    int64_t stood_ns = driver->mono_ns(driver->scheduler) - stall->since_ns;
    if (stood_ns <= 0) return fault_fail(report, "no time has passed since it was stalled");
    uint64_t watchdog_moves = driver->task_moves(driver->scheduler, target->task + 1) - stall->watchdog_moves;
    bool consistent = renewals_seen(target, stall, watchdog_moves, seen, sizeof seen);
    snprintf(report->text, sizeof report->text, "its worker stood for %.3f s, none of %d threads in state T; %s",
             (double)stood_ns / 1e9, threads, seen);
    return consistent;
}

static bool stall_worker_heal(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct stall_worker_state *stall = (void *)target->state;
    (void)report;
    if (stall->stalled) driver->task_stopped(driver->scheduler, target->task, false);
    stall->stalled = false;
    return true;
}

const struct fault FAULT_STALL_WORKER = {
    .row = &FAULT_ROWS[FAULT_ID_STALL_WORKER],
    .explanation =
        "The worker gets no turn (virtual time), or stops where it next sleeps, waits or passes a checkpoint (real\n"
        "time); its watchdog runs on. This models a deadlock, a call that does not return, and a thread pool that is\n"
        "full: the lease is renewed and no other client gets the lock, for as long as it lasts. A lock without a\n"
        "watchdog loses its lease as in pause-client. Not modelled: a garbage collection, which stops the watchdog\n"
        "too.",
    .target = "client",
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = stall_worker_inject,
    .prove = stall_worker_prove,
    .heal = stall_worker_heal,
};
