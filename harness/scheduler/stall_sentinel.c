#include "harness/scheduler/stall_sentinel.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/process/proc_file.h"
#include "harness/scheduler/clock.h"

enum {
    THREADS_MOST = 4096, /* that are watched; a power of two, and twice as many places */
    PLACES = 2 * THREADS_MOST,
    PROCESSES_MOST = 1024,
    PATH_ROOM = 64,
    TEXT_ROOM = 8192,
    READ_AT_ONCE_NS = 200000, /* two clocks that are read within this time show one moment */
    READ_TRIES = 100,
};

/* How long each thread had waited for a processor when it was last looked at, by the thread's id. */
struct waits {
    int count;
    struct {
        int id; /* 0: the place is free */
        int64_t waited_ns;
    } places[PLACES];
};

struct stall_sentinel {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all that follows */
    pthread_cond_t stopped;
    bool is_stopping, has_looked;
    int64_t period_ns;
    int64_t mono_ns, wall_ahead_ns; /* of the last look */
    struct waits waits[2];
    int current; /* index of the waits that the next look compares with */
    struct stall longest;
    struct {
        int count, ids[PROCESSES_MOST];
    } todo; /* processes to visit in this look */
};

static void note_stall(struct stall_sentinel *self, enum stall_kind kind, int64_t length_ns, const char *process) {
    if (length_ns <= self->longest.length_ns) return;
    self->longest = (struct stall){.length_ns = length_ns, .kind = (int32_t)kind};
    snprintf(self->longest.process, sizeof self->longest.process, "%.19s", process);
}

/* The place of a thread: its own, or the free one that it would get. */
static int waits_place(const struct waits *waits, int id) {
    unsigned place = (unsigned)id * 2654435761u % PLACES;
    while (waits->places[place].id && waits->places[place].id != id) place = (place + 1) % PLACES;
    return (int)place;
}

/* A thread that is new has waited since it began; at the first look nobody is new. */
static void visit_thread(struct stall_sentinel *self, int pid, int id) {
    char text[TEXT_ROOM];
    long long ran_ns, waited_ns;
    if (!proc_read(text, sizeof text, "/proc/%d/task/%d/schedstat", pid, id)) return;
    if (sscanf(text, "%lld %lld", &ran_ns, &waited_ns) != 2) return;
    const struct waits *before = &self->waits[self->current];
    struct waits *now = &self->waits[!self->current];
    if (now->count == THREADS_MOST) return;
    int place = waits_place(now, id), old = waits_place(before, id);
    now->count += now->places[place].id == 0;
    now->places[place].id = id;
    now->places[place].waited_ns = waited_ns;
    int64_t more_ns = waited_ns - (before->places[old].id ? before->places[old].waited_ns : 0);
    if (!self->has_looked || more_ns <= self->longest.length_ns) return;
    if (!proc_read(text, sizeof text, "/proc/%d/task/%d/comm", pid, id)) return;
    text[strcspn(text, "\n")] = '\0';
    note_stall(self, STALL_THREAD, more_ns, text);
}

static void add_children(struct stall_sentinel *self, int pid, int id) {
    char text[TEXT_ROOM];
    if (!proc_read(text, sizeof text, "/proc/%d/task/%d/children", pid, id)) return;
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest));)
        if (self->todo.count < PROCESSES_MOST) self->todo.ids[self->todo.count++] = atoi(word);
}

static void visit_process(struct stall_sentinel *self, int pid) {
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    if (!threads) return; /* it has ended */
    for (struct dirent *entry; (entry = readdir(threads));) {
        int id = atoi(entry->d_name);
        if (id <= 0) continue;
        visit_thread(self, pid, id);
        add_children(self, pid, id);
    }
    closedir(threads);
}

/* How far the wall clock is ahead of the monotonic one, both read at one moment. */
static int64_t wall_ahead_ns(void) {
    for (int try = 1;; try++) {
        int64_t before_ns = clock_real_mono_ns(), wall_ns = clock_real_wall_ns();
        if (clock_real_mono_ns() - before_ns <= READ_AT_ONCE_NS || try == READ_TRIES) return wall_ns - before_ns;
    }
}

static void sentinel_look(struct stall_sentinel *self) {
    int64_t now_ns = clock_real_mono_ns(), ahead_ns = wall_ahead_ns();
    if (self->has_looked) {
        note_stall(self, STALL_MACHINE, now_ns - self->mono_ns - self->period_ns, "");
        note_stall(self, STALL_WALL_CLOCK, llabs(ahead_ns - self->wall_ahead_ns), "");
    }
    self->mono_ns = now_ns;
    self->wall_ahead_ns = ahead_ns;
    self->todo.count = 0;
    self->todo.ids[self->todo.count++] = getpid();
    while (self->todo.count) visit_process(self, self->todo.ids[--self->todo.count]);
    memset(&self->waits[self->current], 0, sizeof self->waits[0]);
    self->current = !self->current;
    self->has_looked = true;
}

static void *sentinel_watch(void *argument) {
    struct stall_sentinel *self = argument;
    pthread_mutex_lock(&self->mutex);
    while (!self->is_stopping) {
        int64_t until_ns = clock_real_mono_ns() + self->period_ns;
        struct timespec until = clock_timespec(until_ns);
        if (pthread_cond_timedwait(&self->stopped, &self->mutex, &until) == ETIMEDOUT) sentinel_look(self);
    }
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

/* The thread takes no signal: those of the driver are for its own threads. */
static bool thread_start(struct stall_sentinel *self) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&self->thread, NULL, sentinel_watch, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct stall_sentinel *stall_sentinel_start(int64_t period_ns) {
    struct stall_sentinel *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&self->stopped, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&self->mutex, NULL);
    self->period_ns = period_ns;
    sentinel_look(self);
    if (thread_start(self)) return self;
    free(self);
    return NULL;
}

void stall_sentinel_longest(struct stall_sentinel *self, struct stall *longest) {
    pthread_mutex_lock(&self->mutex);
    sentinel_look(self);
    *longest = self->longest;
    pthread_mutex_unlock(&self->mutex);
}

void stall_sentinel_stop(struct stall_sentinel *self) {
    pthread_mutex_lock(&self->mutex);
    self->is_stopping = true;
    pthread_cond_signal(&self->stopped);
    pthread_mutex_unlock(&self->mutex);
    pthread_join(self->thread, NULL);
    pthread_cond_destroy(&self->stopped);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}
