/* slow-server: a server is busy with a script, or sleeps. */
#include <stdio.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "harness/scheduler/hang_limit.h"

enum { SILENCE_MS = 50, BUSY_LIMIT_MS = 60000, POLL_US = 2000, LONGEST_MS = 600000 };

struct slow_server_state {
    bool busy, silent;
    char limit_ms[16]; /* its lua-time-limit before, after which it answers -BUSY; empty: it was not changed */
};

static bool is_busy(const struct admin_reply *reply) {
    return reply->error && strncmp(reply->text, "BUSY", 4) == 0;
}

/* The connection that sent the script does not wait for its end: the server has read it anyway. Until lua-time-limit
 * has passed a busy server sends no reply, from then on -BUSY to every command: only then is the fault in effect,
 * whatever the speed of the machine. */
static bool inject_script(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct slow_server_state *state = (void *)target->state;
    struct admin_reply reply;
    if (!admin_setting_read(target->socket, "lua-time-limit", state->limit_ms, sizeof state->limit_ms, report) ||
        !admin_command_ok(target->socket, NULL, report, "CONFIG SET lua-time-limit 1"))
        return false;
    if (admin_command_within(target->socket, SILENCE_MS, &reply, NULL, "EVAL %s 0", "while true do end"))
        return fault_fail(report, "it ran no script: %.200s", reply.text);
    state->busy = true;
    driver->server_busy(driver->scheduler, target->server, true);
    int64_t until_ns = hang_limit_deadline_ns(BUSY_LIMIT_MS);
    do {
        if (!admin_command(target->socket, &reply, report, "PING")) return false;
        if (is_busy(&reply)) return true;
    } while (hang_limit_pause(until_ns, POLL_US));
    return fault_fail(report, "it runs the script and answers nevertheless");
}

static bool inject_sleep(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct admin_reply reply;
    int64_t duration_ms;
    if (!fault_option_number(target, "duration-ms", 1, LONGEST_MS, &duration_ms, report)) return false;
    if (driver->virtual_time)
        return fault_fail(report, "a server sleeps in real time only: in virtual time, use how=script or pause-server");
    ((struct slow_server_state *)(void *)target->state)->silent = true;
    driver->server_silent(driver->scheduler, target->server, true);
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.3f", (double)duration_ms / 1e3);
    if (admin_command_within(target->socket, SILENCE_MS, &reply, NULL, "DEBUG SLEEP %s", seconds) && reply.error)
        return fault_fail(report, "it does not sleep: %.200s", reply.text);
    return true;
}

static bool slow_server_inject(struct fault_target *target, struct fault_report *report) {
    int how = fault_option_choice(target, "how", FAULT_CHOICES("script", "sleep"), report);
    return how == 0 ? inject_script(target, report) : how == 1 && inject_sleep(target, report);
}

static bool slow_server_prove(struct fault_target *target, struct fault_report *report) {
    const struct slow_server_state *state = (void *)target->state;
    struct admin_reply reply;
    bool answered =
        admin_command_within(target->socket, state->busy ? ADMIN_LIMIT_MS : SILENCE_MS, &reply, NULL, "PING");
    snprintf(report->text, sizeof report->text, "a PING is answered: %.200s", answered ? reply.text : "not at all");
    return state->busy ? answered && is_busy(&reply) : state->silent && !answered;
}

/* A script that has ended by itself is no failure. One that was killed is polled for until it has ended. */
static bool heal_script(struct fault_target *target, struct fault_report *report) {
    const struct slow_server_state *state = (void *)target->state;
    struct admin_reply reply;
    if (!admin_command(target->socket, &reply, report, "SCRIPT KILL")) return false;
    int64_t until_ns = hang_limit_deadline_ns(BUSY_LIMIT_MS);
    do {
        if (!admin_command(target->socket, &reply, report, "PING")) return false;
        if (!is_busy(&reply))
            return admin_command_ok(target->socket, &reply, report, "CONFIG SET lua-time-limit %s", state->limit_ms);
    } while (hang_limit_pause(until_ns, POLL_US));
    return fault_fail(report, "its script does not end: %.200s", reply.text);
}

static bool slow_server_heal(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct slow_server_state *state = (void *)target->state;
    bool healed = true;
    int64_t duration_ms;
    if (state->limit_ms[0]) {
        healed = heal_script(target, report);
        if (state->busy) driver->server_busy(driver->scheduler, target->server, false);
    } else if (state->silent) {
        healed = fault_option_number(target, "duration-ms", 1, LONGEST_MS, &duration_ms, report) &&
                 admin_command_within(target->socket, (int)duration_ms + ADMIN_LIMIT_MS, NULL, report, "PING");
        driver->server_silent(driver->scheduler, target->server, false);
    }
    *state = (struct slow_server_state){.busy = false};
    return healed;
}

const struct fault FAULT_SLOW_SERVER = {
    .row = &FAULT_ROWS[FAULT_ID_SLOW_SERVER],
    .explanation =
        "script: an endless read-only script, with busy-reply-threshold (lua-time-limit) at 1 ms, so that every\n"
        "command is answered -BUSY from the first moment on; SCRIPT KILL heals. Locks fail to acquire, to release\n"
        "and to renew, and blocked clients are not served. sleep: DEBUG SLEEP; no command is answered until it ends,\n"
        "then all of them, in the order of arrival. Not modelled: the silence before the threshold (5 s by default),\n"
        "which in virtual time is pause-server, and a server that is only a little slow (a delay on its links).",
    .target = "server",
    .options = FAULT_OPTIONS(
        {"how", "script",
         "script: a busy script, every command is answered -BUSY until healed; sleep: no reply (real time)"},
        {"duration-ms", "2000", "the duration of the sleep, in ms; healing waits for its end"}),
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = slow_server_inject,
    .prove = slow_server_prove,
    .heal = slow_server_heal,
};
