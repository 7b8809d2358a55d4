/* Which tasks get no turn because a fault has stopped their process, or has stalled the task alone. */
#ifndef LOCKSTORM_TASK_STOPS_H
#define LOCKSTORM_TASK_STOPS_H

#include "harness/scheduler/server_connection.h"
#include "harness/scheduler/shared_page.h"

enum { STOPPED_PROCESSES_MAX = SHARED_PAGE_TASKS + SERVERS_MAX };

/* Zero but for the page and the arrays: nothing is stopped. */
struct task_stops {
    struct shared_page *page;
    struct {
        int pid, reasons; /* 0, 0: free */
    } process[STOPPED_PROCESSES_MAX];
    int *stalled; /* of each of the page's tasks: number of reasons */
};

/* A process was stopped, or may go on: a client's, with its tasks among the first `tasks`, or a server's. Returns the
 * number of reasons that are left. */
int task_stops_set_process(struct task_stops *stops, int tasks, int pid, bool stopped);
/* The process has ended: no reason is left. */
void task_stops_forget_process(struct task_stops *stops, int pid);
/* The same as task_stops_set_process for one task. Wakes the task in real time when no reason is left. */
int task_stops_set_task(struct task_stops *stops, int task, bool stalled);
/* Another process is about to use the task's slot: no reason is left. */
void task_stops_forget_task(struct task_stops *stops, int task);
/* Stops the process of a task, a child of the caller, so that none of its records is half written, also of other tasks
 * among the first `tasks`. True: it is stopped. False: it has ended, or was in the middle of a record every time for 20
 * seconds. */
bool task_stops_between_records(const struct task_stops *stops, int tasks, int task);

#endif
