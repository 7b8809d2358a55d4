/* Runs the tasks of many clients in one process and one thread: each is a coroutine with its own sockets. A task that
 * waits for a socket, for time or for the driver is suspended, and one that can go on runs. In real time only.
 *
 * A task that is stalled (TASK_STOP_STALL) is resumed when what it waits for has come, finds the flag and waits for the
 * driver: its reply stays unread and its sleep does not end, while the other tasks run. Decision 0130. */
#pragma once

#include "harness/scheduler/task.h"
#include "harness/scheduler/timer_heap.h"
#include "harness/simulation/coroutine.h"

struct carried_task;

struct carrier {
    struct task_carrier tasks; /* first: what tasks call */
    const struct task_slot *first;
    struct carried_task *carried; /* of each slot from `first` on */
    int count;
    int active;    /* tasks that have begun and not ended */
    int *runnable; /* a ring of tasks that can go on, each in it at most once */
    int runnable_from, runnable_count;
    struct timer_heap deadlines;
    int epoll_fd, driver_fd;
};

/* For the tasks whose slots are the `count` ones from `first` on. driver_fd: the eventfd on which the driver says that
 * it has changed a slot; the caller's. False: errno says why there are no descriptors left. The caller closes. */
bool carrier_open(struct carrier *carrier, const struct task_slot *first, int count, int driver_fd);
/* Only when no task is active. */
void carrier_close(struct carrier *carrier);

/* Adds a task, which begins with carrier_run. */
void carrier_add(struct carrier *carrier, const struct task_slot *slot, void (*run)(void *), void *argument);
/* Runs the tasks until all have ended. False with errno: the descriptors could not be waited for. */
bool carrier_run(struct carrier *carrier);
