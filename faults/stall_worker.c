/* stall-worker: the worker stands still while its watchdog goes on.
 *
 * Whether the watchdog renews is seen at the server: a key with the same content that lives longer than it was going
 * to. Which keys are locks, nobody has to know. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/process.h"

extern const struct fault FAULT_STALL_WORKER;

enum { LEASES = 8, STAND_LIMIT_MS = 5000, LOOK_EVERY_US = 200, LEASES_LIMIT_MS = 500, SEEN_LIMIT_MS = 1000 };

/* A key that will expire: a digest of its name and content, and when. */
struct lease {
    char digest[41];
    int64_t expires_ms;
};

struct stall {
    bool stalled;
    int lease_count;
    int64_t since_ns;
    uint64_t moves, watchdog_moves;
    struct lease leases[LEASES];
};
_Static_assert(sizeof(struct stall) <= FAULT_STATE, "it is kept in a target's state");

static const char LEASES_SCRIPT[] =
    "local said, now = {}, redis.call('time') "
    "for _, key in ipairs(redis.call('scan', '0', 'count', '100')[2]) do "
    "local rest = redis.call('pttl', key) "
    "if rest > 0 then said[#said + 1] = redis.sha1hex(key .. redis.call('dump', key)) .. "
    "string.format(' %.0f', now[1] * 1000 + math.floor(now[2] / 1000) + rest) end end return said";

/* The keys of the client's first node that will expire; none when it cannot be asked. */
static int leases_look(const struct fault_target *target, struct lease leases[LEASES]) {
    struct fault_report unused;
    struct answer answer;
    int count = 0;
    if (!target->socket || !ask_within(target->socket, LEASES_LIMIT_MS, &answer, &unused, "EVAL %s 0", LEASES_SCRIPT))
        return 0;
    if (answer.error) return 0;
    for (char *line = answer.text; *line && count < LEASES; line += strcspn(line, "\n") + 1) {
        count += sscanf(line, "%40s %" SCNd64, leases[count].digest, &leases[count].expires_ms) == 2;
        if (!strchr(line, '\n')) break;
    }
    return count;
}

/* How many of the leases that there were have been made longer, and how many are as they were. */
static void leases_compare(const struct fault_target *target, const struct stall *stall, int *longer, int *same) {
    struct lease now[LEASES];
    int count = leases_look(target, now);
    *longer = *same = 0;
    for (int each = 0; each < stall->lease_count; each++) {
        for (int other = 0; other < count; other++) {
            if (strcmp(stall->leases[each].digest, now[other].digest) != 0) continue;
            *longer += now[other].expires_ms > stall->leases[each].expires_ms;
            *same += now[other].expires_ms == stall->leases[each].expires_ms;
        }
    }
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    struct stall *stall = (struct stall *)(void *)target->state;
    int threads, stopped;
    if (!process_look(target->pid, &threads, &stopped)) return fault_fail(report, "process %d is gone", target->pid);
    stall->stalled = true;
    means->strand_stopped(means->conductor, target->strand, true);
    for (long waited_us = 0; !means->strand_stands(means->conductor, target->strand); waited_us += LOOK_EVERY_US) {
        if (waited_us > STAND_LIMIT_MS * 1000L)
            return fault_fail(report, "its worker does not come to a place to stand");
        process_nap_us(LOOK_EVERY_US);
    }
    stall->since_ns = means->mono_ns(means->conductor);
    stall->moves = means->strand_moves(means->conductor, target->strand);
    stall->watchdog_moves = means->strand_moves(means->conductor, target->strand + 1);
    stall->lease_count = leases_look(target, stall->leases);
    return true;
}

/* A watchdog that has woken may have its renewal still on the way. */
static bool renewals_seen(const struct fault_target *target, const struct stall *stall, uint64_t moves, char *said,
                          size_t size) {
    int longer = 0, same = 0;
    /* In real time a lock may have a thread of its own, of which no strand knows. */
    if (moves == 0 && !target->means->virtual_time) leases_compare(target, stall, &longer, &same);
    for (long waited_us = 0; moves > 0 && waited_us < SEEN_LIMIT_MS * 1000L; waited_us += LOOK_EVERY_US * 50) {
        leases_compare(target, stall, &longer, &same);
        if (longer > 0 || same == 0) break;
        process_nap_us(LOOK_EVERY_US * 50);
    }
    if (moves == 0 && longer == 0) snprintf(said, size, "nothing was renewed meanwhile");
    else if (longer > 0)
        snprintf(said, size, "its watchdog renewed: %d of %d leases made longer", longer, stall->lease_count);
    else if (same > 0) snprintf(said, size, "its watchdog moved, and renewed nothing");
    else snprintf(said, size, "its watchdog moved, and had no lease to renew");
    return moves == 0 || longer > 0 || same == 0;
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    const struct stall *stall = (const struct stall *)(void *)target->state;
    int threads, stopped;
    char said[128];
    if (!process_look(target->pid, &threads, &stopped)) return fault_fail(report, "process %d is gone", target->pid);
    if (stopped > 0)
        return fault_fail(report, "%d of its %d threads are in state T: all of it stands", stopped, threads);
    uint64_t moves = means->strand_moves(means->conductor, target->strand) - stall->moves;
    if (moves > 0) return fault_fail(report, "its worker went on %" PRIu64 " times", moves);
    int64_t stood_ns = means->mono_ns(means->conductor) - stall->since_ns;
    if (stood_ns <= 0) return fault_fail(report, "no time has passed since it was stalled");
    uint64_t watchdog_moves = means->strand_moves(means->conductor, target->strand + 1) - stall->watchdog_moves;
    bool seen = renewals_seen(target, stall, watchdog_moves, said, sizeof said);
    snprintf(report->text, sizeof report->text, "its worker stood for %.3f s, none of %d threads in state T; %s",
             (double)stood_ns / 1e9, threads, said);
    return seen;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    struct stall *stall = (struct stall *)(void *)target->state;
    (void)report;
    if (stall->stalled) means->strand_stopped(means->conductor, target->strand, false);
    stall->stalled = false;
    return true;
}

const struct fault FAULT_STALL_WORKER = {
    .name = "stall-worker",
    .summary = "a client's worker stands still while its watchdog goes on renewing",
    .proof =
        "no thread in state T, the worker went on not once; its leases at the server were made longer, if it renews",
    .explanation =
        "The worker gets no turn (virtual time), or stands where it next sleeps, waits or passes a checkpoint (real time);\n"
        "its watchdog is left alone. This is the model of a deadlock, of a call that does not return, of a thread pool\n"
        "that is full: the lease is renewed and nobody else gets in, for as long as it lasts. A lock without a watchdog\n"
        "loses its lease as in pause-client. It does not model a garbage collection: that stops the watchdog too.",
    .source = "RedLock.net#68 (a stuck holder holds for ever); redis.io asks to limit how often a lock is extended",
    .target = "client",
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
