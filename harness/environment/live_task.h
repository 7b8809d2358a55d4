/* A task of a client that runs in a process of its own, as its sessions use it: they wait by the clock of the client's
 * host, and they count what they send so that the scheduler waits until it has arrived. The live environment and the
 * client's connection to the resource each have one of the same task.
 *
 * Deadlines are stamps of the host's monotonic clock (ns), which stands still while the host is suspended. */
#pragma once

#include "harness/scheduler/task.h"

struct live_task {
    struct task task;
    struct task_slot *host; /* where this host's clocks stand; NULL: they are right */
    int64_t reply_limit_ns; /* how long an ordinary command waits for its reply */
};

int64_t live_task_mono_ns(const struct live_task *self);
/* When limit_ns from now have passed; INT64_MAX: never. */
int64_t live_task_deadline_ns(const struct live_task *self, int64_t limit_ns);

/* Returns true when `fd` is readable, false when the deadline has passed. may_block as in task_wait_readable. */
bool live_task_await_readable(struct live_task *self, int fd, int64_t deadline_ns, bool may_block);
/* How a session waits for its socket. */
struct live_wait {
    struct live_task *task;
    int64_t deadline_ns;
    bool may_block;
};
struct live_wait live_wait_of(struct live_task *self, int64_t limit_ns, bool may_block);
/* As live_task_await_readable; counts what the session may have sent before the wait. */
bool live_wait_readable(const struct live_wait *wait, int fd);

/* Sleeps until the deadline, or until the task is woken. */
void live_task_sleep_until(struct live_task *self, int64_t deadline_ns);

/* The task sends something that the scheduler has to see arrive. */
void live_task_count_sent(const struct live_task *self);
/* The same; and the task may give its turn back before that has arrived, which no other task may overtake. */
void live_task_count_unawaited(const struct live_task *self);

/* A function of a session in a program that is built without the library for it: it does nothing but return this. */
#define SESSION_ABSENT(result, name, parameters, ...)                                                                  \
    result name parameters {                                                                                           \
        return __VA_ARGS__;                                                                                            \
    }
