#include "harness/client_group/carrier.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/wakeup.h"

enum { EVENTS_AT_ONCE = 256 };
#define FROM_DRIVER UINT64_MAX /* what epoll says of driver_fd */

enum waits_for { WAITS_FOR_NOTHING, WAITS_FOR_SOCKET, WAITS_FOR_TIME, WAITS_FOR_DRIVER, WAITS_FOR_END };

struct carried_task {
    struct coroutine coroutine;
    struct carrier *carrier;
    void (*run)(void *);
    void *argument;
    enum waits_for waits_for;
    struct timer deadline;       /* when its wait is over */
    int fd;                      /* the socket that it waits for */
    bool readable;               /* it was readable */
    bool wakes_at_once;          /* it was woken while it did not sleep: its next sleep ends at once */
    struct carried_task *joiner; /* waits for its end */
};

static struct carried_task *carried_of(struct task_carrier *tasks, const struct task_slot *slot) {
    struct carrier *carrier = (struct carrier *)tasks;
    return &carrier->carried[slot - carrier->first];
}

static int carrier_number_of(const struct carried_task *task) {
    return (int)(task - task->carrier->carried);
}

/* --- what suspends and resumes a task --- */

static void enqueue(struct carried_task *task) {
    struct carrier *carrier = task->carrier;
    carrier->runnable[(carrier->runnable_from + carrier->runnable_count++) % carrier->count] = carrier_number_of(task);
}

static void let_go_on(struct carried_task *task) {
    if (task->waits_for == WAITS_FOR_NOTHING) return;
    task->waits_for = WAITS_FOR_NOTHING;
    timer_heap_remove(&task->carrier->deadlines, &task->deadline);
    enqueue(task);
}

static void on_deadline(struct timer *timer) {
    let_go_on((void *)((char *)timer - offsetof(struct carried_task, deadline)));
}

/* Called by the task's own code: it suspends it. */
static void wait_for(struct carried_task *task, enum waits_for what, int64_t deadline_ns) {
    task->waits_for = what;
    if (deadline_ns != INT64_MAX) timer_heap_set(&task->carrier->deadlines, &task->deadline, deadline_ns);
    coroutine_leave(&task->coroutine);
}

/* One event at most for each wait. The kernel forgets a descriptor that was closed. */
static void carrier_watch(const struct carried_task *task) {
    uint64_t data = (uint64_t)carrier_number_of(task) << 32 | (uint32_t)task->fd;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = data};
    int epoll_fd = task->carrier->epoll_fd;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, task->fd, &event) == 0) return;
    if (errno != ENOENT || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, task->fd, &event) != 0) abort();
}

static bool carried_await_readable(struct task_carrier *tasks, const struct task_slot *slot, int fd,
                                   int64_t deadline_ns) {
    struct carried_task *task = carried_of(tasks, slot);
    task->fd = fd;
    task->readable = false;
    carrier_watch(task);
    wait_for(task, WAITS_FOR_SOCKET, deadline_ns);
    return task->readable;
}

static void carried_sleep_until(struct task_carrier *tasks, const struct task_slot *slot, int64_t deadline_ns) {
    struct carried_task *task = carried_of(tasks, slot);
    if (!task->wakes_at_once) wait_for(task, WAITS_FOR_TIME, deadline_ns);
    task->wakes_at_once = false;
}

static void carried_await_driver(struct task_carrier *tasks, const struct task_slot *slot) {
    wait_for(carried_of(tasks, slot), WAITS_FOR_DRIVER, INT64_MAX);
}

static void carried_wake(struct task_carrier *tasks, const struct task_slot *sleeper) {
    struct carried_task *task = carried_of(tasks, sleeper);
    if (task->waits_for == WAITS_FOR_TIME) let_go_on(task);
    else task->wakes_at_once = true;
}

/* --- beginning and end --- */

static void carried_run(void *argument) {
    struct carried_task *task = argument;
    task->run(task->argument);
    task->carrier->active--;
    if (task->joiner) let_go_on(task->joiner);
    task->joiner = NULL;
}

void carrier_add(struct carrier *carrier, const struct task_slot *slot, void (*run)(void *), void *argument) {
    struct carried_task *task = carried_of(&carrier->tasks, slot);
    task->run = run;
    task->argument = argument;
    task->wakes_at_once = false;
    coroutine_begin(&task->coroutine, carried_run, task);
    carrier->active++;
    enqueue(task);
}

static bool carried_start(struct task_carrier *tasks, const struct task_slot *second, void (*run)(void *),
                          void *argument) {
    carrier_add((struct carrier *)tasks, second, run, argument);
    return true;
}

static void carried_join(struct task_carrier *tasks, const struct task_slot *first, const struct task_slot *second) {
    struct carried_task *task = carried_of(tasks, second);
    if (!task->coroutine.active) return;
    task->joiner = carried_of(tasks, first);
    wait_for(task->joiner, WAITS_FOR_END, INT64_MAX);
}

bool carrier_open(struct carrier *carrier, const struct task_slot *first, int count, int driver_fd) {
    *carrier = (struct carrier){.tasks = {.await_readable = carried_await_readable,
                                          .sleep_until = carried_sleep_until,
                                          .await_driver = carried_await_driver,
                                          .wake = carried_wake,
                                          .start = carried_start,
                                          .join = carried_join},
                                .first = first,
                                .carried = calloc((size_t)count, sizeof *carrier->carried),
                                .runnable = calloc((size_t)count, sizeof *carrier->runnable),
                                .count = count,
                                .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                                .driver_fd = driver_fd};
    if (!carrier->carried || !carrier->runnable) abort();
    for (int each = 0; each < count; each++) {
        carrier->carried[each].carrier = carrier;
        carrier->carried[each].deadline.deliver = on_deadline;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = FROM_DRIVER};
    return carrier->epoll_fd >= 0 && epoll_ctl(carrier->epoll_fd, EPOLL_CTL_ADD, driver_fd, &event) == 0;
}

void carrier_close(struct carrier *carrier) {
    for (int each = 0; each < carrier->count; each++) coroutine_free(&carrier->carried[each].coroutine);
    if (carrier->epoll_fd >= 0) close(carrier->epoll_fd);
    timer_heap_close(&carrier->deadlines);
    free(carrier->carried);
    free(carrier->runnable);
}

/* --- running --- */

/* The driver gave some tasks their turn, or let stalled ones go on; which, their slots say. */
static void hear_driver(struct carrier *carrier) {
    wakeup_drain(carrier->driver_fd);
    for (int each = 0; each < carrier->count; each++) {
        const struct task_slot *slot = &carrier->first[each];
        if (carrier->carried[each].waits_for != WAITS_FOR_DRIVER) continue;
        bool stalled = atomic_load(&slot->stopped) & TASK_STOP_STALL;
        bool has_turn = atomic_load_explicit(&slot->state, memory_order_acquire) == TASK_RUNNING;
        if (has_turn && !stalled) let_go_on(&carrier->carried[each]);
    }
}

/* A descriptor that a task waited for earlier may still report: then it waits for another one by now, or for nothing.
 */
static void hear_socket(struct carrier *carrier, uint64_t data) {
    struct carried_task *task = &carrier->carried[data >> 32];
    if (task->waits_for != WAITS_FOR_SOCKET || task->fd != (int)(uint32_t)data) return;
    task->readable = true;
    let_go_on(task);
}

/* Waits for events until the first deadline, or takes those that have come if tasks can run. False with errno. */
static bool await_events(struct carrier *carrier) {
    struct epoll_event events[EVENTS_AT_ONCE];
    int64_t left_ns = timer_heap_next_ns(&carrier->deadlines);
    if (left_ns != INT64_MAX) left_ns -= clock_real_mono_ns();
    if (carrier->runnable_count == 0 && left_ns > 0) {
        struct timespec left = clock_timespec(left_ns);
        struct pollfd any = {.fd = carrier->epoll_fd, .events = POLLIN};
        if (ppoll(&any, 1, left_ns == INT64_MAX ? NULL : &left, NULL) < 0 && errno != EINTR) return false;
    }
    int count = epoll_wait(carrier->epoll_fd, events, EVENTS_AT_ONCE, 0);
    if (count < 0 && errno != EINTR) return false;
    for (int each = 0; each < count; each++) {
        if (events[each].data.u64 == FROM_DRIVER) hear_driver(carrier);
        else hear_socket(carrier, events[each].data.u64);
    }
    return true;
}

bool carrier_run(struct carrier *carrier) {
    while (carrier->active > 0) {
        for (int left = carrier->runnable_count; left > 0; left--) {
            struct carried_task *task = &carrier->carried[carrier->runnable[carrier->runnable_from]];
            carrier->runnable_from = (carrier->runnable_from + 1) % carrier->count;
            carrier->runnable_count--;
            coroutine_resume(&task->coroutine);
        }
        if (carrier->active > 0 && !await_events(carrier)) return false;
        timer_heap_deliver(&carrier->deadlines, clock_real_mono_ns());
    }
    return true;
}
