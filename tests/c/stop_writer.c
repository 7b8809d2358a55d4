/* stop_writer HISTORY STAGE: a process that appends without end is stopped again and again. However it is stopped by
 * SIGSTOP alone, it often stands in the middle of a record; by conductor_stop_between_records it never does. HISTORY
 * and STAGE are paths at which nothing is yet.
 *
 * Prints one JSON line: how many of the stops left a record half written. Exit status: 0 none that should not have, 1
 * one did or a plain stop never did, 2 it could not be tried. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/actor.h"
#include "harness/conductor.h"

enum { STOPS = 300, CAPACITY = 1 << 20, STRAND = 0 };

struct scene {
    const char *history, *stage;
    struct conductor *conductor;
    int pid;
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

/* How many of the stops left a record half written; -1: one could not be made. */
static int stop_often(const struct scene *scene, bool (*stop)(const struct scene *)) {
    int torn = 0;
    for (int each = 0; each < STOPS; each++) {
        bool full;
        nap();
        if (!stop(scene)) return -1;
        torn += is_torn(scene, &full);
        if (full) return -1;
        kill(scene->pid, SIGCONT);
    }
    return torn;
}

int main(int argc, char **argv) {
    struct history_error error = {.text = "stop_writer HISTORY STAGE"};
    struct history_settings settings = {.capacity = CAPACITY, .time = HISTORY_TIME_REAL};
    if (argc != 3 || !history_create(argv[1], &settings, &error) || !stage_create(argv[2], settings.time, 1, &error))
        return fprintf(stderr, "stop_writer: %s\n", error.text), 2;
    struct scene scene = {.history = argv[1], .stage = argv[2], .conductor = conductor_open(argv[2], &error)};
    if (!scene.conductor || conductor_add_strand(scene.conductor) != STRAND) return 2;
    if ((scene.pid = fork()) == 0) write_without_end(&scene);
    if (scene.pid < 0 || !conductor_watch(scene.conductor, STRAND, scene.pid)) return 2;
    int plainly = stop_often(&scene, stop_plainly), between = stop_often(&scene, stop_between_records);
    kill(scene.pid, SIGKILL);
    waitpid(scene.pid, NULL, 0);
    conductor_close(scene.conductor);
    printf("{\"stops\": %d, \"torn_plainly\": %d, \"torn_between_records\": %d}\n", STOPS, plainly, between);
    if (plainly < 0 || between < 0) return 2;
    return plainly > 0 && between == 0 ? 0 : 1;
}
