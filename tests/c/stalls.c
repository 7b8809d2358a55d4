/* What the stall sentinel says of clocks that this program sets, and of threads that wait for a processor.
 *
 *   stalls clocks           prints the longest stall after each of a few moments
 *   stalls threads CHILD    prints the longest stall when it is that of a child that gets next to no processor time, or
 *                           after ten seconds whatever it is then */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/stall_sentinel.h"

enum { PERIOD_MS = 3600000, LONGEST_TRIES = 100, NAP_US = 100000 }; /* the sentinel's own thread never looks */

static int64_t mono_ms = 1000, wall_ms = 500000;
static bool is_real;

static int64_t read_clock(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t clock_real_mono_ns(void) {
    return is_real ? read_clock(CLOCK_MONOTONIC) : mono_ms * CLOCK_NS_PER_MS;
}
int64_t clock_real_wall_ns(void) {
    return is_real ? read_clock(CLOCK_REALTIME) : wall_ms * CLOCK_NS_PER_MS;
}

static void print_longest(struct stall_sentinel *sentinel) {
    static const char *const KINDS[] = {"none", "machine", "thread", "wall clock"};
    struct stall stall;
    stall_sentinel_longest(sentinel, &stall);
    printf("%s %lld ms %s\n", KINDS[stall.kind], (long long)(stall.length_ns / CLOCK_NS_PER_MS), stall.process);
}

static void pass(int64_t mono, int64_t wall) {
    mono_ms += mono;
    wall_ms += wall;
}

static void play_clocks(void) {
    struct stall_sentinel *sentinel = stall_sentinel_start(INT64_C(1000000) * PERIOD_MS);
    pass(PERIOD_MS, PERIOD_MS); /* as long as it meant to sleep */
    print_longest(sentinel);
    pass(PERIOD_MS + 1700000, PERIOD_MS + 1700000); /* a stall of half an hour, beyond any wait of this machine */
    print_longest(sentinel);
    pass(1000, 1000 + 1800000); /* the wall clock is set forward, further than the stall */
    print_longest(sentinel);
    pass(1000, 1000 - 1900000); /* and back, further still */
    print_longest(sentinel);
    pass(PERIOD_MS + 5, PERIOD_MS + 5); /* a shorter stall changes nothing */
    print_longest(sentinel);
    stall_sentinel_stop(sentinel);
}

/* A child on this core that runs only when nobody else wants to, beside one that always wants to. */
static pid_t start_child(const char *name, int policy) {
    pid_t child = fork();
    if (child) return child;
    struct sched_param normal = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    sched_setscheduler(0, policy, &normal);
    for (volatile long count = 0;; count++) {
    }
}

static void play_threads(const char *name) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    is_real = true;
    pid_t busy = start_child("busy", SCHED_OTHER), idle = start_child(name, SCHED_IDLE);
    struct stall_sentinel *sentinel = stall_sentinel_start(INT64_C(1000000) * PERIOD_MS);
    struct stall stall = {0};
    for (int try = 0; try < LONGEST_TRIES && strcmp(stall.process, name); try++) {
        usleep(NAP_US);
        stall_sentinel_longest(sentinel, &stall);
    }
    print_longest(sentinel);
    stall_sentinel_stop(sentinel);
    kill(busy, SIGKILL);
    kill(idle, SIGKILL);
    while (wait(NULL) > 0) {
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "clocks") == 0) play_clocks();
    else if (argc == 3 && strcmp(argv[1], "threads") == 0) play_threads(argv[2]);
    else return 2;
    return 0;
}
