/* Waiting for a condition by looking at it again and again, with a limit in real time: the machine's, whatever kind of
 * time the trial has. The limit counts only time in which the caller ran (harness/scheduler/hang_limit.h).
 *
 *     int64_t until_ms = real_time_deadline_ms(LIMIT_MS);
 *     do
 *         if (it_has_happened()) return true;
 *     while (real_time_pause(until_ms, PAUSE_US));
 *     return false;
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The end of a limit that begins now, in ms of the time that counts. */
int64_t real_time_deadline_ms(int64_t limit_ms);

/* Sleeps for pause_us, not beyond the deadline and at most HANG_LIMIT_LOOK_MS, and returns true; returns false at once
 * when the deadline has passed. So a condition is looked at once more after the deadline: a machine that kept the
 * caller waiting is not mistaken for a condition that did not come. */
bool real_time_pause(int64_t until_ms, int64_t pause_us);

/* Whether a descriptor becomes readable within limit_ms. */
bool real_time_await_readable(int fd, int64_t limit_ms);
