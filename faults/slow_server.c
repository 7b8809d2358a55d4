/* slow-server: a server that is busy with something else. */
#include <stdio.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/process.h"

extern const struct fault FAULT_SLOW_SERVER;

enum { SILENCE_MS = 50, BUSY_LIMIT_MS = 5000, LOOK_EVERY_US = 2000, LONGEST_MS = 600000 };

struct slowness {
    bool busy, silent;
    char limit_ms[16]; /* its own, after which it answers -BUSY; empty: it was not changed */
};

static const struct fault_word OPTIONS[] = {
    {"how", "script",
     "script: a busy script, and -BUSY for everybody until it is healed; sleep: no answer (real time)"},
    {"duration-ms", "2000", "how long it sleeps, in ms; healing waits for the rest"},
    {0},
};

static struct slowness *slowness_of(struct fault_target *target) {
    return (struct slowness *)(void *)target->state;
}

static bool is_busy(const struct answer *answer) {
    return answer->error && strncmp(answer->text, "BUSY", 4) == 0;
}

/* The script's own client does not wait for it: what it sent is read all the same. A busy server answers nobody before
 * its limit has passed, and everybody after that: only then is the fault in effect, however fast the machine is. */
static bool inject_script(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    struct slowness *self = slowness_of(target);
    struct fault_report unused;
    struct answer answer;
    if (!ask_good(target->socket, &answer, report, "CONFIG GET lua-time-limit")) return false;
    const char *limit = strchr(answer.text, '\n');
    if (!limit) return fault_fail(report, "it has no lua-time-limit");
    snprintf(self->limit_ms, sizeof self->limit_ms, "%.15s", limit + 1);
    if (!ask_good(target->socket, &answer, report, "CONFIG SET lua-time-limit 1")) return false;
    if (ask_within(target->socket, SILENCE_MS, &answer, &unused, "EVAL %s 0", "while true do end"))
        return fault_fail(report, "it ran no script: %.200s", answer.text);
    self->busy = true;
    means->server_busy(means->conductor, target->server, true);
    for (long waited_us = 0; waited_us < BUSY_LIMIT_MS * 1000L; waited_us += LOOK_EVERY_US) {
        if (!ask(target->socket, &answer, report, "PING")) return false;
        if (is_busy(&answer)) return true;
        process_nap_us(LOOK_EVERY_US);
    }
    return fault_fail(report, "it runs the script and answers all the same");
}

static bool inject_sleep(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    struct fault_report unused;
    struct answer answer;
    int64_t duration_ms;
    if (!fault_number(&FAULT_SLOW_SERVER, target, "duration-ms", 1, LONGEST_MS, &duration_ms, report)) return false;
    if (means->virtual_time)
        return fault_fail(report, "a server sleeps in real time only: in virtual time, use how=script or pause-server");
    slowness_of(target)->silent = true;
    means->server_silent(means->conductor, target->server, true);
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.3f", (double)duration_ms / 1e3);
    if (ask_within(target->socket, SILENCE_MS, &answer, &unused, "DEBUG SLEEP %s", seconds) && answer.error)
        return fault_fail(report, "it does not sleep: %.200s", answer.text);
    return true;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    const char *how = fault_text(&FAULT_SLOW_SERVER, target, "how");
    if (strcmp(how, "script") == 0) return inject_script(target, report);
    if (strcmp(how, "sleep") == 0) return inject_sleep(target, report);
    return fault_fail(report, "slow-server: how=%.40s is neither script nor sleep", how);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    const struct slowness *self = slowness_of(target);
    struct answer answer;
    struct fault_report unused;
    bool answered = ask_within(target->socket, self->busy ? ASK_LIMIT_MS : SILENCE_MS, &answer, &unused, "PING");
    snprintf(report->text, sizeof report->text, "a PING is answered: %.200s", answered ? answer.text : "not at all");
    return self->busy ? answered && is_busy(&answer) : self->silent && !answered;
}

/* A script that has ended by itself is no failure; one that has not is asked for until it has. */
static bool heal_script(struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    if (!ask(target->socket, &answer, report, "SCRIPT KILL")) return false;
    for (long waited_us = 0; waited_us < BUSY_LIMIT_MS * 1000L; waited_us += LOOK_EVERY_US) {
        if (!ask(target->socket, &answer, report, "PING")) return false;
        if (!is_busy(&answer))
            return ask_good(target->socket, &answer, report, "CONFIG SET lua-time-limit %s",
                            slowness_of(target)->limit_ms);
        process_nap_us(LOOK_EVERY_US);
    }
    return fault_fail(report, "its script goes on: %.200s", answer.text);
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    struct slowness *self = slowness_of(target);
    struct answer answer;
    bool healed = true;
    int64_t duration_ms;
    if (self->limit_ms[0]) {
        healed = heal_script(target, report);
        if (self->busy) means->server_busy(means->conductor, target->server, false);
    } else if (self->silent) {
        healed = fault_number(&FAULT_SLOW_SERVER, target, "duration-ms", 1, LONGEST_MS, &duration_ms, report) &&
                 ask_within(target->socket, (int)duration_ms + ASK_LIMIT_MS, &answer, report, "PING");
        means->server_silent(means->conductor, target->server, false);
    }
    *self = (struct slowness){.busy = false};
    return healed;
}

const struct fault FAULT_SLOW_SERVER = {
    .name = "slow-server",
    .summary = "a server is busy: a script that does not end, or a sleep",
    .proof = "script: a PING is answered -BUSY; sleep: a PING gets no answer",
    .explanation =
        "script: an endless read-only script, with busy-reply-threshold (lua-time-limit) down to 1 ms, so that everybody is\n"
        "answered -BUSY from the first moment on; SCRIPT KILL heals. Locks fail to acquire, to release and to renew, and\n"
        "blocked clients are not served. sleep: DEBUG SLEEP; nobody is answered until it is over, then everybody, in the\n"
        "order of arrival. It does not model the silence before the threshold (5 s as shipped): in virtual time that is\n"
        "pause-server; nor a server that is only a little slow (a delay on its links).",
    .source = "redisson#3332, #3334 (BUSY stopped the renewal); redis.io, \"Diagnosing latency issues\"",
    .target = "server",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
