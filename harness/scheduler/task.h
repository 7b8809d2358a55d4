/* A task's side of the shared page: it gives the turn back and waits for the next one. */
#pragma once

#include "harness/scheduler/shared_page.h"

/* What runs tasks that have no thread of their own: several in one process, in real time. Its functions suspend the
 * task that calls them, and others run meanwhile. */
struct task_carrier {
    /* Until `fd` is readable: true; or until deadline_ns: false. */
    bool (*await_readable)(struct task_carrier *, const struct task_slot *, int fd, int64_t deadline_ns);
    /* Until deadline_ns, or until the task is woken. */
    void (*sleep_until)(struct task_carrier *, const struct task_slot *, int64_t deadline_ns);
    /* Until the driver, which has changed the slot, says so. May return before: the caller looks at the slot. */
    void (*await_driver)(struct task_carrier *, const struct task_slot *);
    void (*wake)(struct task_carrier *, const struct task_slot *sleeper);
    /* Starts the second task of a client. False: it cannot. */
    bool (*start)(struct task_carrier *, const struct task_slot *second, void (*run)(void *), void *argument);
    /* Until the second task has ended. */
    void (*join)(struct task_carrier *, const struct task_slot *first, const struct task_slot *second);
};

struct task {
    struct shared_page *page;
    struct task_slot *place;
    int turn_fd;                  /* eventfd, written by the scheduler: this task has the turn */
    int yield_fd;                 /* eventfd, written by every task: it has given the turn back */
    struct task_carrier *carrier; /* NULL: the task is a thread */
};

/* A new process's first call. In virtual time it returns with the process's first turn, so that processes may start
 * side by side and still appear in an order that comes from the seed. */
void task_enter(struct task *task);

/* Gives the turn back in `state` (IDLE, HELD, READY) and returns when this task has the turn again; in real time, when
 * the driver lets it go on. */
void task_park(struct task *task, enum task_state state);

/* Sleeps until the trial's clock reaches deadline_ns, or another task calls task_wake. In real time a wake-up that
 * came after the last sleep ends this one: the caller looks at the clock. */
void task_sleep_until(struct task *task, int64_t deadline_ns);
void task_wake(struct task *sleeper);

/* The life of a second task in a process. The first task calls task_announce and then starts the thread, which calls
 * task_begin before anything else and task_end after everything else; task_await_end returns after that. */
void task_announce(struct task *second);
void task_begin(struct task *second);
void task_end(struct task *second, struct task *first);
void task_await_end(struct task *first, struct task *second);
bool task_has_ended(const struct task *second);

/* Waits until `fd` is readable: true; or until the trial's clock passes deadline_ns: false. With `may_block` the other
 * side may keep the task waiting (a blocking pop, a subscription): other tasks run and the clock moves meanwhile.
 * Without, virtual time stands still until the answer is there, however long the machine takes. */
bool task_wait_readable(struct task *task, int fd, int64_t deadline_ns, bool may_block);

/* Virtual time: gives the turn back until news have come, as has_news(holder) says when the scheduler asks, or the
 * trial's clock has reached deadline_ns. Returns when this task has the turn again. */
void task_await(struct task *task, bool (*has_news)(void *holder), void *holder, int64_t deadline_ns);

/* Holds here if the driver has armed this checkpoint. Returns true if it was held. */
bool task_checkpoint(struct task *task, const char *name);
