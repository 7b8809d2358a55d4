/* Whether a server that cannot be asked has nothing left to do: its processes sleep.
 *
 * A process that is given something to read is runnable before the writer's call returns. So whoever has written, and
 * then sees every process asleep at one and the same moment, knows that all of it was read and dealt with, and that
 * what is waited for now comes from nobody inside. The moment is found by looking twice: who was asleep both times, and
 * has not run in between by the kernel's count, was asleep all the while. Timers make a server stir by itself; that
 * only takes another look. Who naps for a moment before it tries again - a spin lock was taken - is not at rest. */
#ifndef LOCKSTORM_REST_H
#define LOCKSTORM_REST_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true once this process and its children were seen to be at rest, false when they were not within limit_ms of
 * real time or the process is gone. */
bool processes_await_rest(int pid, int64_t limit_ms);
/* The same for a server that is one process of many threads, which are looked at often. One of them, its `timer` (0: it
 * has none), sleeps and looks at a clock again and again, by which it has nothing to do after the first time: it need
 * not rest. NULL: the server is gone. The caller frees with thread_watch_close. */
struct thread_watch;
struct thread_watch *thread_watch_open(int pid, int timer);
void thread_watch_close(struct thread_watch *watch);
bool threads_await_rest(struct thread_watch *watch, int64_t limit_ms);

/* Returns true once the timer, which looks at the clock again and again and sleeps in between, has done so after this
 * was called; false when it has not within limit_ms of real time or is gone. */
bool timer_await_round(struct thread_watch *watch, int64_t limit_ms);

/* The same for several that speak to each other: what one has dealt with may have given another something to do, so
 * they have to be at rest at one and the same moment. */
bool families_await_rest(const int *pids, int count, int64_t limit_ms);

/* Returns true once no packet waited at any of the machine's processors, false when some did for limit_ms of real time.
 * A unix socket has what was written when the writer's call returns. A connection over TCP has not, not even on one
 * machine: on a busy one the packet may lie there for milliseconds, and neither side knows. A packet that a processor
 * has taken from its queue to deliver it is not counted; who asks on that same processor is asked to wait until it is
 * delivered, by the kernel. So this holds for packets of processes that share the caller's one processor. */
bool packets_await_rest(int64_t limit_ms);

#endif
