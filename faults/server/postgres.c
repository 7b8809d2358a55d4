#include "faults/server/postgres.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "faults/common/process.h"
#include "harness/process/proc_file.h"
#include "harness/scheduler/hang_limit.h"

enum { PROCESSES_MOST = 256, TEXT_ROOM = 4096, STOP_LIMIT_MS = 60000, POLL_US = 100 };

/* The SSLRequest with which a client may begin: the server replies with one letter. */
static const unsigned char SSL_REQUEST[] = {0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f};

/* The postmaster first, then its children: once the postmaster is stopped there are no new ones. */
struct server_processes {
    int pid[PROCESSES_MOST];
    int count;
};

bool is_postgres(const struct fault_target *target) {
    return target->service && strcmp(target->service, "postgres") == 0;
}

bool postgres_query(const struct fault_target *target, const char *statement, int64_t *number,
                    struct fault_report *report) {
    *number = target->driver->server_query(target->server, statement);
    return *number != INT64_MIN || fault_fail(report, "%s does not answer", target->name);
}

bool postgres_answers(const struct fault_target *target, int limit_ms) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char letter;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || strlen(target->socket) >= sizeof address.sun_path) abort();
    strcpy(address.sun_path, target->socket);
    bool answers = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                   send(fd, SSL_REQUEST, sizeof SSL_REQUEST, MSG_NOSIGNAL) == sizeof SSL_REQUEST &&
                   hang_limit_await_readable(fd, hang_limit_deadline_ns(limit_ms)) && recv(fd, &letter, 1, 0) == 1;
    close(fd);
    return answers;
}

static void processes_read(int pid, struct server_processes *processes) {
    char children[TEXT_ROOM];
    *processes = (struct server_processes){.pid = {pid}, .count = 1};
    if (!proc_read(children, sizeof children, "/proc/%d/task/%d/children", pid, pid)) return;
    for (char *rest = children, *word; processes->count < PROCESSES_MOST && (word = strtok_r(rest, " ", &rest));)
        processes->pid[processes->count++] = atoi(word);
}

/* A process that has ended meanwhile counts as stopped. */
static bool stop_one(int pid, struct fault_report *report) {
    int threads, stopped;
    if (kill(pid, SIGSTOP) < 0) return true;
    int64_t until_ns = hang_limit_deadline_ns(STOP_LIMIT_MS);
    do
        if (!process_count_threads(pid, &threads, &stopped) || stopped == threads) return true;
    while (hang_limit_pause(until_ns, POLL_US));
    return fault_fail(report, "process %d did not stop", pid);
}

bool postgres_stop(const struct fault_target *target, bool *sent, struct fault_report *report) {
    struct server_processes processes;
    *sent = true;
    target->driver->process_stopped(target->driver->scheduler, target->pid, true);
    if (!stop_one(target->pid, report)) return false;
    processes_read(target->pid, &processes);
    for (int each = 1; each < processes.count; each++)
        if (!stop_one(processes.pid[each], report)) return false;
    return true;
}

/* One after the other: each may have received a statement meanwhile, and their order must not be a race. */
bool postgres_continue(const struct fault_target *target, bool *sent, struct fault_report *report) {
    struct server_processes processes;
    (void)report;
    if (!*sent) return true;
    *sent = false;
    if (target->driver->process_stopped(target->driver->scheduler, target->pid, false) > 0) return true;
    processes_read(target->pid, &processes);
    for (int each = processes.count - 1; each >= 0; each--) {
        kill(processes.pid[each], SIGCONT);
        target->driver->process_catch_up(target->driver->scheduler, processes.pid[each]);
    }
    return true;
}

bool postgres_prove_stopped(const struct fault_target *target, struct fault_report *report) {
    struct server_processes processes;
    int threads, stopped, still = 0;
    processes_read(target->pid, &processes);
    for (int each = 0; each < processes.count; each++)
        still += process_count_threads(processes.pid[each], &threads, &stopped) && stopped == threads;
    snprintf(report->text, sizeof report->text, "%d of %d processes in state T", still, processes.count);
    return still == processes.count;
}

/* Children notice the postmaster's end by themselves, each after a while, and may report it to their clients before
 * they end: so they are killed while the postmaster is stopped. */
bool postgres_end(int pid, struct fault_report *report) {
    struct server_processes processes;
    if (!stop_one(pid, report)) return false;
    processes_read(pid, &processes);
    for (int each = 1; each < processes.count; each++) process_end(processes.pid[each], NULL);
    return process_end(pid, report);
}

/* --- crash-server --- */

enum { STATEMENT = 128 };

/* The position of the last checkpoint in the log: recovery ends with a new one. */
static const char CHECKPOINT[] = "SELECT (checkpoint_lsn - '0/0')::bigint FROM pg_control_checkpoint()";

struct postgres_crash_state {
    bool killed;
    int64_t checkpoint;
    int64_t written; /* the number of a large object: needs no table */
};
_Static_assert(sizeof(struct postgres_crash_state) <= FAULT_STATE, "fits the target's state");

bool postgres_crash_inject(struct fault_target *target, struct fault_report *report) {
    struct postgres_crash_state *state = (void *)target->state;
    const struct fault_driver *driver = target->driver;
    if (!postgres_query(target, CHECKPOINT, &state->checkpoint, report) ||
        !postgres_query(target, "SELECT lo_create(0)", &state->written, report))
        return false;
    driver->unreliable(driver->scheduler);
    driver->server_silent(driver->scheduler, target->server, true);
    state->killed = true;
    if (!postgres_end(target->pid, report)) return false;
    return driver->settle(driver->scheduler) || fault_fail(report, "not every server answers");
}

bool postgres_crash_heal(struct fault_target *target, struct fault_report *report) {
    struct postgres_crash_state *state = (void *)target->state;
    const struct fault_driver *driver = target->driver;
    if (!state->killed) return true;
    if (!driver->server_restart(target->server)) return fault_fail(report, "%s did not start again", target->name);
    state->killed = false;
    driver->server_silent(driver->scheduler, target->server, false);
    return true;
}

bool postgres_crash_prove(struct fault_target *target, struct fault_report *report) {
    struct postgres_crash_state *state = (void *)target->state;
    char statement[STATEMENT];
    int64_t checkpoint, kept, removed = 0;
    snprintf(statement, sizeof statement, "SELECT count(*) FROM pg_largeobject_metadata WHERE oid = %" PRId64,
             state->written);
    if (!postgres_query(target, CHECKPOINT, &checkpoint, report) || !postgres_query(target, statement, &kept, report))
        return false;
    snprintf(statement, sizeof statement, "SELECT lo_unlink(%" PRId64 ")", state->written);
    if (kept == 1 && !postgres_query(target, statement, &removed, report)) return false;
    snprintf(report->text, sizeof report->text,
             "its log was recovered up to %" PRIX64 ", before %" PRIX64 "; what was committed last is %s", checkpoint,
             state->checkpoint, kept ? "there" : "lost");
    return checkpoint > state->checkpoint && kept == 1;
}
