/* What is due when: a heap of entries, each part of something that waits for a moment of the trial's clock.
 *
 * In real time a timer of the loop delivers. In virtual time nothing happens by itself: the earliest moment stands in
 * the stage, the conductor moves the clock and asks for SETTLE, which delivers. Entries of the same moment go in the
 * order in which they were put down, so that a trial repeats. */
#ifndef LOCKSTORM_AGENDA_H
#define LOCKSTORM_AGENDA_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/stage.h"

#define AGENDA_NEVER INT64_MAX

struct agenda_entry {
    int64_t due_ns;
    uint64_t order;
    size_t place; /* in the heap, counted from 1; 0: not in it */
    void (*deliver)(struct agenda_entry *entry);
};

struct agenda {
    ev_timer timer;
    struct ev_loop *loop;
    struct stage *stage;
    struct agenda_entry **heap; /* heap[0] is not used */
    size_t count, room;
    uint64_t orders;
};

/* The stage and the loop stay the caller's and must outlive the agenda. */
void agenda_open(struct agenda *agenda, struct ev_loop *loop, struct stage *stage);
void agenda_close(struct agenda *agenda);

/* Puts an entry down, or moves it; its owner removes it before it goes away. */
void agenda_set(struct agenda *agenda, struct agenda_entry *entry, int64_t due_ns);
void agenda_remove(struct agenda *agenda, struct agenda_entry *entry);

/* Delivers what is due now, returns how many. An entry is removed before its function is called. */
size_t agenda_deliver(struct agenda *agenda);
/* The earliest moment, AGENDA_NEVER if there is none. */
int64_t agenda_next_ns(const struct agenda *agenda);

#endif
