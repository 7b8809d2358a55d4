/* stop_writer DIRECTORY: stops a process that appends without end, again and again. SIGSTOP alone often stops it in the
 * middle of a record; scheduler_stop_between_records never does.
 *
 * Prints one JSON line: the number of stops of both kinds, and how many of them left a record half written. On a busy
 * machine a history may be full before the writer was stopped STOPS times. Exit status: 0 passed, 1 failed, 2 it could
 * not be tried. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/scheduler/actor.h"
#include "harness/scheduler/scheduler.h"

enum { STOPS = 300, CAPACITY = 1 << 21, WRITER_TASK = 0 };

struct stop_trial {
    char history[PATH_MAX], page[PATH_MAX];
    struct scheduler *scheduler;
    int pid;
};

struct stop_tally {
    int stops, torn;
};

static void pause_briefly(void) {
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

_Noreturn static void write_without_end(const struct stop_trial *trial) {
    struct history_error error;
    struct shared_page *page = shared_page_open(trial->page, &error);
    struct actor actor = {.history = history_open(trial->history, &error), .page = page, .id = 1};
    if (!page || !actor.history) exit(2);
    actor.host = &page->tasks[WRITER_TASK];
    for (;;) actor_append(&actor, (struct history_record){.kind = HISTORY_NOTE});
}

static bool stop_plainly(const struct stop_trial *trial) {
    siginfo_t info;
    return kill(trial->pid, SIGSTOP) == 0 && waitid(P_PID, (id_t)trial->pid, &info, WSTOPPED | WNOWAIT) == 0;
}

static bool stop_between_records(const struct stop_trial *trial) {
    return scheduler_stop_between_records(trial->scheduler, WRITER_TASK);
}

/* Whether the last slot that is counted is not published; with one writer, no other slot can be torn. */
static bool is_torn(const struct stop_trial *trial, bool *full) {
    struct history_error error;
    struct history_record record;
    struct history_reader *reader = history_reader_open(trial->history, &error);
    uint64_t count = reader ? history_reader_count(reader) : CAPACITY;
    bool torn = reader && count > 0 && !history_reader_at(reader, count - 1, &record);
    *full = count == CAPACITY;
    history_reader_close(reader);
    return torn;
}

static bool begin(struct stop_trial *trial, const char *directory, const char *name) {
    struct history_error error;
    struct history_settings settings = {.capacity = CAPACITY, .time = HISTORY_TIME_REAL};
    snprintf(trial->history, sizeof trial->history, "%s/%s.history", directory, name);
    snprintf(trial->page, sizeof trial->page, "%s/%s.page", directory, name);
    if (!history_create(trial->history, &settings, &error) ||
        !shared_page_create(trial->page, settings.time, 1, SHARED_PAGE_TASKS, &error))
        return fprintf(stderr, "stop_writer: %s\n", error.text), false;
    trial->scheduler = scheduler_open(trial->page, &error);
    if (!trial->scheduler || scheduler_add_task(trial->scheduler) != WRITER_TASK) return false;
    if ((trial->pid = fork()) == 0) write_without_end(trial);
    return trial->pid > 0 && scheduler_watch(trial->scheduler, WRITER_TASK, trial->pid);
}

static void end(struct stop_trial *trial) {
    kill(trial->pid, SIGKILL);
    waitpid(trial->pid, NULL, 0);
    scheduler_close(trial->scheduler);
}

/* False: it could not be tried. */
static bool stop_often(const char *directory, const char *name, bool (*stop)(const struct stop_trial *),
                       struct stop_tally *tally) {
    struct stop_trial trial;
    if (!begin(&trial, directory, name)) return false;
    bool full = false, good = true;
    *tally = (struct stop_tally){0};
    while (good && !full && tally->stops < STOPS) {
        pause_briefly();
        good = stop(&trial);
        bool torn = is_torn(&trial, &full);
        tally->stops += !full;
        tally->torn += !full && torn;
        kill(trial.pid, SIGCONT);
    }
    end(&trial);
    return good;
}

int main(int argc, char **argv) {
    struct stop_tally plainly, between;
    if (argc != 2) return fprintf(stderr, "usage: stop_writer DIRECTORY\n"), 2;
    if (!stop_often(argv[1], "plainly", stop_plainly, &plainly)) return 2;
    if (!stop_often(argv[1], "between", stop_between_records, &between)) return 2;
    printf(
        "{\"stops_plainly\": %d, \"torn_plainly\": %d, \"stops_between_records\": %d, \"torn_between_records\": %d}\n",
        plainly.stops, plainly.torn, between.stops, between.torn);
    return plainly.torn > 0 && between.stops > 0 && between.torn == 0 ? 0 : 1;
}
