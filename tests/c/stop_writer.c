/* stop_writer DIRECTORY: a process that appends without end is stopped again and again. However it is stopped by
 * SIGSTOP alone, it often stands in the middle of a record; by conductor_stop_between_records it never does.
 *
 * Prints one JSON line: how often it was stopped in either way, and how many of the stops left a record half written.
 * On a busy machine a history may be full before it was stopped as often as it was to be. Exit status: 0 as it should
 * be, 1 not, 2 it could not be tried. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/actor.h"
#include "harness/conductor.h"

enum { STOPS = 300, CAPACITY = 1 << 21, STRAND = 0 };

struct scene {
    char history[PATH_MAX], stage[PATH_MAX];
    struct conductor *conductor;
    int pid;
};

struct tally {
    int stops, torn;
};

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

_Noreturn static void write_without_end(const struct scene *scene) {
    struct history_error error;
    struct stage *stage = stage_open(scene->stage, &error);
    struct actor actor = {.history = history_open(scene->history, &error), .stage = stage, .id = 1};
    if (!stage || !actor.history) exit(2);
    actor.host = &stage->strands[STRAND];
    for (;;) actor_append(&actor, (struct history_record){.kind = HISTORY_NOTE});
}

static bool stop_plainly(const struct scene *scene) {
    siginfo_t info;
    return kill(scene->pid, SIGSTOP) == 0 && waitid(P_PID, (id_t)scene->pid, &info, WSTOPPED | WNOWAIT) == 0;
}

static bool stop_between_records(const struct scene *scene) {
    return conductor_stop_between_records(scene->conductor, STRAND);
}

/* Whether the last slot that is counted is not published: with one writer no other can be. */
static bool is_torn(const struct scene *scene, bool *full) {
    struct history_error error;
    struct history_record record;
    struct history_reader *reader = history_reader_open(scene->history, &error);
    uint64_t count = reader ? history_reader_count(reader) : CAPACITY;
    bool torn = reader && count > 0 && !history_reader_at(reader, count - 1, &record);
    *full = count == CAPACITY;
    history_reader_close(reader);
    return torn;
}

static bool begin(struct scene *scene, const char *directory, const char *name) {
    struct history_error error;
    struct history_settings settings = {.capacity = CAPACITY, .time = HISTORY_TIME_REAL};
    snprintf(scene->history, sizeof scene->history, "%s/%s.history", directory, name);
    snprintf(scene->stage, sizeof scene->stage, "%s/%s.stage", directory, name);
    if (!history_create(scene->history, &settings, &error) || !stage_create(scene->stage, settings.time, 1, &error))
        return fprintf(stderr, "stop_writer: %s\n", error.text), false;
    scene->conductor = conductor_open(scene->stage, &error);
    if (!scene->conductor || conductor_add_strand(scene->conductor) != STRAND) return false;
    if ((scene->pid = fork()) == 0) write_without_end(scene);
    return scene->pid > 0 && conductor_watch(scene->conductor, STRAND, scene->pid);
}

static void end(struct scene *scene) {
    kill(scene->pid, SIGKILL);
    waitpid(scene->pid, NULL, 0);
    conductor_close(scene->conductor);
}

/* False: it could not be tried. */
static bool stop_often(const char *directory, const char *name, bool (*stop)(const struct scene *),
                       struct tally *tally) {
    struct scene scene;
    if (!begin(&scene, directory, name)) return false;
    bool full = false, good = true;
    *tally = (struct tally){0};
    while (good && !full && tally->stops < STOPS) {
        nap();
        good = stop(&scene);
        bool torn = is_torn(&scene, &full);
        tally->stops += !full;
        tally->torn += !full && torn;
        kill(scene.pid, SIGCONT);
    }
    end(&scene);
    return good;
}

int main(int argc, char **argv) {
    struct tally plainly, between;
    if (argc != 2) return fprintf(stderr, "stop_writer DIRECTORY\n"), 2;
    if (!stop_often(argv[1], "plainly", stop_plainly, &plainly)) return 2;
    if (!stop_often(argv[1], "between", stop_between_records, &between)) return 2;
    printf(
        "{\"stops_plainly\": %d, \"torn_plainly\": %d, \"stops_between_records\": %d, \"torn_between_records\": %d}\n",
        plainly.stops, plainly.torn, between.stops, between.torn);
    return plainly.torn > 0 && between.stops > 0 && between.torn == 0 ? 0 : 1;
}
