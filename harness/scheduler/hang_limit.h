/* Limits that only guard against hanging: whether an answer comes, a process becomes idle, a task gives its turn back.
 *
 * They count time in which the caller ran. Between two looks at the clock at most HANG_LIMIT_LOOK_MS count, so neither
 * a machine that stood still nor one that ran other processes is taken for something that hangs. Who waits therefore
 * looks again and again, at least every HANG_LIMIT_LOOK_MS. Each thread has a clock of its own.
 *
 *     int64_t until_ns = hang_limit_deadline_ns(LIMIT_MS);
 *     while (!it_has_happened()) {
 *         if (hang_limit_is_over(until_ns)) return false;
 *         sleep for a moment
 *     }
 *
 * What a trial measures - leases, reply limits, bounds - has other clocks (clock.h, shared_page.h). Decision 0095. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

enum { HANG_LIMIT_LOOK_MS = 100 };

/* The time that has counted for this thread so far, in ns; a look. */
int64_t hang_limit_now_ns(void);
/* What hang_limit_now_ns shows when limit_ms from now have counted. Means nothing to another thread. */
int64_t hang_limit_deadline_ns(int64_t limit_ms);
bool hang_limit_is_over(int64_t until_ns);
/* Sleeps for pause_us, not beyond the deadline and at most HANG_LIMIT_LOOK_MS, and returns true; returns false at once
 * when the deadline has passed. So a condition is looked at once more after the deadline: a machine that kept the
 * caller waiting is not mistaken for a condition that did not come.
 *
 *     do
 *         if (it_has_happened()) return true;
 *     while (hang_limit_pause(until_ns, PAUSE_US));
 *     return false;
 */
bool hang_limit_pause(int64_t until_ns, int64_t pause_us);
/* poll(2), until the deadline, not interrupted by signals. True: one of the descriptors is ready. */
bool hang_limit_poll(struct pollfd *fds, nfds_t count, int64_t until_ns);
bool hang_limit_await_readable(int fd, int64_t until_ns);
