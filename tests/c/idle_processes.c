/* idle_processes: asks harness/scheduler/quiescence.h about processes and threads that do a known thing.
 *
 * All of it shares one core, as a trial does: on another core a process that is about to sleep has the state of one
 * that sleeps before the kernel counts that it has left its processor.
 *
 * Prints one JSON line: for each case whether it was found idle, or whether the timer's round was seen. A case that is
 * never idle is asked about for NEVER_MS, the others for as long as it takes. Exit status: 0 printed, 2 it could not be
 * tried. */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/quiescence.h"

enum { NEVER_MS = 60, ALWAYS_MS = 20000, THREADS = 3, MOMENT_NS = 300000 };

/* What the threads of the observed process do. They look at their orders again and again only where they run anyway. */
enum order { WAIT, SPIN, NAP, WAKE_UP_OFTEN, TIMED_FUTEX, LONG_FUTEX, UNTIMED_FUTEX, PASS_ON, END };

struct stage {
    _Atomic int order[THREADS];
    _Atomic int id[THREADS];
    _Atomic uint32_t futex;
};

static struct stage *stage;
static int wake[THREADS][2]; /* a byte makes a waiting thread look at its order */
static int again[2];         /* a byte starts the third thread anew */
static int ring[2][2];       /* PASS_ON: a byte that two threads or processes hand each other without end */

static void moment(void) {
    nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
}

static void byte_write(int fd) {
    if (write(fd, "", 1) != 1) exit(2);
}

static void byte_read(int fd) {
    char byte;
    if (read(fd, &byte, 1) != 1) exit(0); /* the parent is gone */
}

/* --- single processes --- */

static void never(void) {
    byte_read(wake[0][0]);
}

static void spin(void) {
    for (;;) continue;
}

static void nap(void) {
    for (;;) moment();
}

static void poll_nothing(void) {
    for (;;) poll(NULL, 0, 1);
}

static void ppoll_nothing(void) {
    for (;;) ppoll(NULL, 0, &(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
}

static void select_nothing(void) {
    for (;;) select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = MOMENT_NS / 1000});
}

static void poll_a_pipe(void) {
    poll(&(struct pollfd){.fd = wake[0][0], .events = POLLIN}, 1, -1);
}

static void select_a_pipe(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(wake[0][0], &set);
    select(wake[0][0] + 1, &set, NULL, NULL, NULL);
}

/* Wakes up often by itself, and has nothing to do. */
static void poll_a_pipe_often(void) {
    for (;;) poll(&(struct pollfd){.fd = wake[0][0], .events = POLLIN}, 1, 5);
}

static void pass_on_first(void) {
    for (;;) byte_write(ring[0][1]), byte_read(ring[1][0]);
}

static void pass_on_second(void) {
    for (;;) byte_read(ring[0][0]), byte_write(ring[1][1]);
}

static int started(void (*work)(void)) {
    int pid = fork();
    if (pid < 0) exit(2);
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    exit(0);
}

static void ended(int pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void parent_of_sleeper(void) {
    started(never);
    never();
}

static void parent_of_spinner(void) {
    started(never);
    started(spin);
    never();
}

/* Its child has ended, and is not waited for. */
static void parent_of_ended(void) {
    siginfo_t info;
    int child = fork();
    if (child == 0) _exit(0);
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    never();
}

static const char *separator = "{";

static void say(const char *name, bool seen) {
    printf("%s\"%s\": %s", separator, name, seen ? "true" : "false");
    separator = ", ";
}

static void say_process(const char *name, void (*work)(void), int64_t limit_ms) {
    int pid = started(work);
    say(name, processes_await_quiescence(pid, limit_ms));
    ended(pid);
}

/* Two processes, asked about together. */
static void say_two(const char *name, void (*one)(void), void (*two)(void), int64_t limit_ms) {
    int pids[] = {started(one), started(two)};
    say(name, families_await_quiescence(pids, 2, limit_ms));
    ended(pids[0]);
    ended(pids[1]);
}

static void say_stopped(void) {
    int pid = started(never);
    siginfo_t info;
    processes_await_quiescence(pid, ALWAYS_MS);
    kill(pid, SIGSTOP);
    waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT);
    say("stopped", processes_await_quiescence(pid, NEVER_MS));
    ended(pid);
    say("gone", processes_await_quiescence(pid, NEVER_MS));
}

static void say_limit(void) {
    int pid = started(spin);
    int64_t began_ns = clock_real_mono_ns();
    bool idle = processes_await_quiescence(pid, NEVER_MS);
    say("asked for as long as allowed", !idle && clock_real_mono_ns() - began_ns >= NEVER_MS * CLOCK_NS_PER_MS);
    ended(pid);
    pid = started(never);
    processes_await_quiescence(pid, ALWAYS_MS);
    say("asked once without a limit", processes_await_quiescence(pid, 0));
    ended(pid);
    say("none at all", families_await_quiescence(NULL, 0, 0));
}

static void say_processes(void) {
    say_process("reads a pipe", never, ALWAYS_MS);
    say_process("polls a pipe", poll_a_pipe, ALWAYS_MS);
    say_process("polls a pipe often", poll_a_pipe_often, ALWAYS_MS);
    say_process("selects a pipe", select_a_pipe, ALWAYS_MS);
    say_process("has a sleeping child", parent_of_sleeper, ALWAYS_MS);
    say_process("has an ended child", parent_of_ended, ALWAYS_MS);
    say_process("spins", spin, NEVER_MS);
    say_process("naps", nap, NEVER_MS);
    say_process("polls nothing", poll_nothing, NEVER_MS);
    say_process("ppolls nothing", ppoll_nothing, NEVER_MS);
    say_process("selects nothing", select_nothing, NEVER_MS);
    say_process("has a spinning child", parent_of_spinner, NEVER_MS);
    say_two("two that sleep", never, never, ALWAYS_MS);
    say_two("the first spins", spin, never, NEVER_MS);
    say_two("the second spins", never, spin, NEVER_MS);
    say_two("two that wake each other", pass_on_first, pass_on_second, 5 * NEVER_MS);
    say_stopped();
    say_limit();
}

/* --- threads --- */

static void futex_wait(const struct timespec *limit) {
    syscall(SYS_futex, &stage->futex, FUTEX_WAIT, 0, limit, NULL, 0);
}

static void *obey(void *number) {
    int own = *(int *)number;
    atomic_store(&stage->id[own], (int)syscall(SYS_gettid));
    for (int order; (order = atomic_load(&stage->order[own])) != END;) {
        if (order == WAIT) byte_read(wake[own][0]);
        if (order == NAP) moment();
        if (order == WAKE_UP_OFTEN) poll(&(struct pollfd){.fd = wake[own][0], .events = POLLIN}, 1, 5);
        if (order == TIMED_FUTEX) futex_wait(&(struct timespec){.tv_nsec = MOMENT_NS});
        if (order == LONG_FUTEX) futex_wait(&(struct timespec){.tv_sec = 3600});
        if (order == UNTIMED_FUTEX) futex_wait(NULL);
        if (order == PASS_ON && own == 1) byte_write(ring[0][1]), byte_read(ring[1][0]);
        if (order == PASS_ON && own == 2) byte_read(ring[0][0]), byte_write(ring[1][1]);
    }
    atomic_store(&stage->id[own], 0);
    return NULL;
}

/* The process of the threads: starts the third anew when it has ended. */
static void host(void) {
    static int numbers[THREADS] = {0, 1, 2};
    pthread_t thread[THREADS];
    for (int each = 0; each < THREADS; each++)
        if (pthread_create(&thread[each], NULL, obey, &numbers[each]) != 0) exit(2);
    for (;;) {
        pthread_join(thread[2], NULL);
        byte_read(again[0]);
        if (pthread_create(&thread[2], NULL, obey, &numbers[2]) != 0) exit(2);
    }
}

static void give(int thread, enum order order) {
    atomic_store(&stage->order[thread], order);
    byte_write(wake[thread][1]);
}

static void await_thread(int thread, bool is_there) {
    while ((atomic_load(&stage->id[thread]) != 0) != is_there) moment();
}

static void say_orders(struct thread_watch *watch, const char *name, enum order one, enum order two, int64_t limit_ms) {
    give(1, one);
    give(2, two);
    say(name, threads_await_quiescence(watch, limit_ms));
    give(1, WAIT);
    give(2, WAIT);
    if (one == PASS_ON) byte_write(ring[0][1]), byte_write(ring[1][1]); /* neither waits for the other any more */
    threads_await_quiescence(watch, ALWAYS_MS);
}

/* The first thread waits: the others' orders decide. */
static void say_threads(struct thread_watch *watch) {
    say("threads that read", threads_await_quiescence(watch, ALWAYS_MS));
    say("threads that still read", threads_await_quiescence(watch, 0));
    say_orders(watch, "a thread that wakes up often", WAKE_UP_OFTEN, WAIT, ALWAYS_MS);
    say_orders(watch, "a thread in a futex", UNTIMED_FUTEX, WAIT, ALWAYS_MS);
    atomic_store(&stage->futex, 1);
    syscall(SYS_futex, &stage->futex, FUTEX_WAKE, THREADS, NULL, NULL, 0);
    say_orders(watch, "a thread spins", SPIN, WAIT, NEVER_MS);
    say_orders(watch, "another thread spins", WAIT, SPIN, NEVER_MS);
    say_orders(watch, "a thread naps", NAP, WAIT, NEVER_MS);
    say_orders(watch, "two threads wake each other", PASS_ON, PASS_ON, 5 * NEVER_MS);
}

/* A thread that ends, and one that takes its place. */
static void say_changes(struct thread_watch *watch) {
    give(2, END);
    await_thread(2, false);
    say("a thread has ended", threads_await_quiescence(watch, ALWAYS_MS));
    atomic_store(&stage->order[2], SPIN);
    byte_write(again[1]);
    await_thread(2, true);
    say("a new thread spins", threads_await_quiescence(watch, NEVER_MS));
    give(2, WAIT);
    say("the new thread reads", threads_await_quiescence(watch, ALWAYS_MS));
}

static void say_timer(int pid) {
    struct thread_watch *watch = thread_watch_open(pid, atomic_load(&stage->id[1]));
    if (!watch) exit(2);
    atomic_store(&stage->futex, 0);
    say("the timer waits for a byte", timer_await_round(watch, NEVER_MS));
    give(1, TIMED_FUTEX);
    say("the timer sleeps again and again", timer_await_round(watch, ALWAYS_MS));
    say("beside its timer", threads_await_quiescence(watch, ALWAYS_MS));
    give(1, SPIN);
    say("the timer spins", timer_await_round(watch, NEVER_MS));
    say("beside its spinning timer", threads_await_quiescence(watch, ALWAYS_MS));
    give(1, LONG_FUTEX);
    say("the timer goes on with one sleep", timer_await_round(watch, NEVER_MS));
    syscall(SYS_futex, &stage->futex, FUTEX_WAKE, THREADS, NULL, NULL, 0);
    give(1, UNTIMED_FUTEX);
    say("the timer waits for a lock", timer_await_round(watch, NEVER_MS));
    thread_watch_close(watch);
    watch = thread_watch_open(pid, pid + 1000000);
    if (!watch) exit(2);
    say("there is no such timer", timer_await_round(watch, NEVER_MS));
    thread_watch_close(watch);
}

static bool share_one_core(void) {
    cpu_set_t cores, one;
    size_t core = 0;
    if (sched_getaffinity(0, sizeof cores, &cores) < 0) return false;
    while (!CPU_ISSET(core, &cores)) core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

int main(void) {
    if (!share_one_core()) return 2;
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED) return 2;
    for (int each = 0; each < THREADS; each++)
        if (pipe(wake[each]) < 0) return 2;
    if (pipe(again) < 0 || pipe(ring[0]) < 0 || pipe(ring[1]) < 0) return 2;
    say_processes();
    int pid = started(host);
    for (int each = 0; each < THREADS; each++) await_thread(each, true);
    struct thread_watch *watch = thread_watch_open(pid, 0);
    if (!watch) return 2;
    say_threads(watch);
    say_changes(watch);
    say_timer(pid);
    ended(pid);
    say("its process is gone", threads_await_quiescence(watch, NEVER_MS));
    thread_watch_close(watch);
    watch = thread_watch_open(pid, 0);
    say("it was gone before", watch != NULL);
    printf("}\n");
    return 0;
}
