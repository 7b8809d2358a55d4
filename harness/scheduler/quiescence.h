/* Whether the processes of a server that cannot be asked are idle.
 *
 * A process that is given something to read is runnable before the writer's call returns. So a process that has written
 * to a server, and then sees all of the server's processes asleep at one moment, knows that they have read all of it
 * and dealt with it, and that what is still waited for comes from outside. The moment is found with two snapshots: a
 * process that was asleep in both, and has not run in between by the kernel's count, was asleep all the while. Timers
 * make a server run by itself; that only costs another snapshot. A polling sleep, by which a process tries again
 * shortly because a spin lock was taken, is not quiescence. The answer is right for processes that share the caller's
 * one processor: on another one, a process that is about to sleep again has the state of one that sleeps before the
 * kernel counts that it has left its processor. Decision 0009. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Returns true once this process and its children were seen idle; false when they were not within limit_ms
 * (hang_limit.h), or the process is gone: then at once. */
bool processes_await_quiescence(int pid, int64_t limit_ms);
/* The same for several processes that talk to each other: all must be idle in the same snapshot, because what one has
 * dealt with may have given another something to do. */
bool families_await_quiescence(const int *pids, int count, int64_t limit_ms);

/* The same for a server that is one process with many threads, and is watched often. One of them, its `timer` (0: it
 * has none), sleeps and looks at a clock again and again; it need not be idle, because it finds nothing to do after its
 * first look. NULL: the server is gone. The caller frees with thread_watch_close. */
struct thread_watch;
struct thread_watch *thread_watch_open(int pid, int timer);
void thread_watch_close(struct thread_watch *watch);
bool threads_await_quiescence(struct thread_watch *watch, int64_t limit_ms);
/* Returns true once the timer has looked at the clock after this was called; false when it has not within limit_ms,
 * or is gone. */
bool timer_await_round(struct thread_watch *watch, int64_t limit_ms);

/* Number of packets that wait at all processors together, as the kernel's table says (/proc/net/softnet_stat), which is
 * read from `fd` to its end: a line per processor that is online, some 30 of them in one read. 0 where the kernel does
 * not say (before 5.12). */
uint64_t packets_waiting_in(int fd);

/* Returns true once no packet waited at any of the machine's processors, false when some did for limit_ms.
 * What is written to a unix socket has arrived when the writer's call returns. On a TCP connection it has not, not even
 * within one machine: on a busy one a packet may wait for milliseconds, and neither side knows. A packet that a
 * processor has taken from its queue to deliver is not counted any more, but no process runs on that processor until it
 * is delivered. So the answer is right for processes that share the caller's one processor. */
bool packets_await_delivery(int64_t limit_ms);
