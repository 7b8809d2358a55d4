/* history_append DIRECTORY RECORDS: what appending costs, in ns a record, as one JSON line.
 *
 *   clocks          both stamps alone: two readings of the clock, the floor of everything below
 *   prefaulted      actor_append in real time, pages mapped beforehand, one thread
 *   cold            the same on a fresh history: the kernel maps a page every 64 records
 *   two_processes   two processes at once on one prefaulted history; the wall time over the records of both
 *
 * The histories are made in DIRECTORY and removed. Exit status: 0; 2 bad usage or no room. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/scheduler/actor.h"
#include "harness/scheduler/clock.h"

static struct shared_page real_page = {.time = HISTORY_TIME_REAL};

static void die(const char *what) {
    fprintf(stderr, "history_append: %s\n", what);
    exit(2);
}

/* A new history whose file is already unlinked: nothing is left when this process ends. */
static struct history *make(const char *directory, uint64_t records) {
    char path[4096];
    struct history_error error;
    struct history_settings settings = {.time = HISTORY_TIME_REAL, .capacity = records};
    snprintf(path, sizeof path, "%s/append.%d", directory, (int)getpid());
    if (!history_create(path, &settings, &error)) die(error.text);
    struct history *history = history_open(path, &error);
    unlink(path);
    if (!history) die(error.text);
    return history;
}

static void append(struct history *history, uint32_t id, uint64_t records) {
    struct actor actor = {.history = history, .page = &real_page, .id = id};
    for (uint64_t each = 0; each < records; each++) {
        struct history_record record = {.kind = HISTORY_ACQUIRE_INVOKE, .name = 1, .op = (uint32_t)each, .value = -1};
        if (actor_append(&actor, record) == HISTORY_FULL) die("the history is full");
    }
}

static double per_record(int64_t began_ns, uint64_t records) {
    return (double)(clock_real_mono_ns() - began_ns) / (double)records;
}

static double clocks_ns(uint64_t records) {
    volatile int64_t sink = 0;
    int64_t began_ns = clock_real_mono_ns();
    for (uint64_t each = 0; each < records; each++) sink = clock_real_mono_ns() ^ clock_real_wall_ns();
    (void)sink;
    return per_record(began_ns, records);
}

static double append_ns(const char *directory, uint64_t records, bool prefault) {
    struct history *history = make(directory, records);
    if (prefault) history_prefault(history);
    int64_t began_ns = clock_real_mono_ns();
    append(history, 1, records);
    double took_ns = per_record(began_ns, records);
    history_close(history);
    return took_ns;
}

/* The child inherits the mapping, but not the page tables: each prefaults for itself and then says that it is ready. */
static double two_processes_ns(const char *directory, uint64_t records) {
    int ready[2], go[2], status = 0;
    char byte = 0;
    struct history *history = make(directory, records * 2);
    if (pipe(ready) < 0 || pipe(go) < 0) die(strerror(errno));
    pid_t child = fork();
    if (child < 0) die(strerror(errno));
    history_prefault(history);
    if (child == 0) {
        close(go[1]);
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) _exit(2);
        append(history, 2, records);
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1 || write(go[1], &byte, 1) != 1) die("the second process did not start");
    int64_t began_ns = clock_real_mono_ns();
    append(history, 1, records);
    if (waitpid(child, &status, 0) < 0 || status != 0) die("the second process failed");
    double took_ns = per_record(began_ns, records * 2);
    history_close(history);
    return took_ns;
}

int main(int argc, char **argv) {
    uint64_t records = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (records == 0) return fprintf(stderr, "usage: history_append DIRECTORY RECORDS\n"), 2;
    double clocks = clocks_ns(records), prefaulted = append_ns(argv[1], records, true);
    double cold = append_ns(argv[1], records, false), two = two_processes_ns(argv[1], records / 2);
    printf("{\"clocks\": %.2f, \"prefaulted\": %.2f, \"cold\": %.2f, \"two_processes\": %.2f}\n", clocks, prefaulted,
           cold, two);
    return 0;
}
