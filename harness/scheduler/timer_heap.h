/* What is due when: a binary heap of timers, each embedded in the object that waits. Timers of the same moment are
 * delivered in the order in which they were set, so that a trial repeats. Moments are ns of any one clock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TIMER_HEAP_NEVER INT64_MAX
/* The last moment that counts, 146 years after the trial's beginning: wall clocks have stamps for it, too. */
#define TIMER_HEAP_LAST (TIMER_HEAP_NEVER / 2)

struct timer {
    int64_t due_ns;
    uint64_t order;
    size_t place; /* in the heap, counted from 1; 0: not set */
    void (*deliver)(struct timer *timer);
};

/* Zero before use. */
struct timer_heap {
    struct timer **timers; /* timers[0] is not used */
    size_t count, capacity;
    uint64_t next_order;
    void (*changed)(struct timer_heap *heap); /* called when the earliest moment is another one; NULL: nobody asks */
};

/* The moment that comes delay_ns after another, or the sum of two delays; TIMER_HEAP_NEVER when that is after
 * TIMER_HEAP_LAST. Neither is below 0. */
static inline int64_t timer_heap_later_ns(int64_t moment_ns, int64_t delay_ns) {
    return moment_ns > TIMER_HEAP_LAST || delay_ns > TIMER_HEAP_LAST - moment_ns ? TIMER_HEAP_NEVER
                                                                                 : moment_ns + delay_ns;
}

void timer_heap_close(struct timer_heap *heap);

/* Sets a timer, or moves it. Its owner removes it before freeing it. */
void timer_heap_set(struct timer_heap *heap, struct timer *timer, int64_t due_ns);
/* Harmless when it is not set. */
void timer_heap_remove(struct timer_heap *heap, struct timer *timer);

/* Delivers the timers that are due, returns how many. A timer is removed before its function is called. */
size_t timer_heap_deliver(struct timer_heap *heap, int64_t now_ns);
/* The earliest moment, TIMER_HEAP_NEVER if no timer is set. */
int64_t timer_heap_next_ns(const struct timer_heap *heap);
