/* Which tasks wait until when: a heap, the earliest deadline first. Tasks are numbered from 0. */
#pragma once

#include <stdint.h>

struct deadlines {
    int *heap;         /* of tasks */
    int *place;        /* of each task: where it is in the heap, -1: nowhere */
    int64_t *stamp_ns; /* of each task */
    int count;
};

/* For so many tasks, without deadlines at first. The caller closes. */
void deadlines_open(struct deadlines *deadlines, int tasks);
void deadlines_close(struct deadlines *deadlines);

/* The task has no deadline yet. INT64_MAX: it gets none. */
void deadlines_add(struct deadlines *deadlines, int task, int64_t stamp_ns);
/* Harmless when it has none. */
void deadlines_remove(struct deadlines *deadlines, int task);
/* The earliest deadline, or INT64_MAX; and a task that has it, or -1. */
int64_t deadlines_first_ns(const struct deadlines *deadlines);
int deadlines_first(const struct deadlines *deadlines);
