#include "harness/client_group/deadlines.h"

#include <assert.h>
#include <stdlib.h>

enum { NOWHERE = -1 };

void deadlines_open(struct deadlines *deadlines, int tasks) {
    size_t size = (size_t)tasks;
    *deadlines = (struct deadlines){.heap = malloc(size * sizeof *deadlines->heap),
                                    .place = malloc(size * sizeof *deadlines->place),
                                    .stamp_ns = malloc(size * sizeof *deadlines->stamp_ns)};
    if (!deadlines->heap || !deadlines->place || !deadlines->stamp_ns) abort();
    for (int task = 0; task < tasks; task++) deadlines->place[task] = NOWHERE;
}

void deadlines_close(struct deadlines *deadlines) {
    free(deadlines->heap);
    free(deadlines->place);
    free(deadlines->stamp_ns);
    *deadlines = (struct deadlines){0};
}

static int64_t stamp_at(const struct deadlines *deadlines, int place) {
    return deadlines->stamp_ns[deadlines->heap[place]];
}

static void deadlines_put(struct deadlines *deadlines, int place, int task) {
    deadlines->heap[place] = task;
    deadlines->place[task] = place;
}

static void rise(struct deadlines *deadlines, int place) {
    int task = deadlines->heap[place];
    while (place > 0 && stamp_at(deadlines, (place - 1) / 2) > deadlines->stamp_ns[task]) {
        deadlines_put(deadlines, place, deadlines->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    deadlines_put(deadlines, place, task);
}

static void sink(struct deadlines *deadlines, int place) {
    int task = deadlines->heap[place];
    for (int child; (child = 2 * place + 1) < deadlines->count; place = child) {
        if (child + 1 < deadlines->count && stamp_at(deadlines, child + 1) < stamp_at(deadlines, child)) child++;
        if (stamp_at(deadlines, child) >= deadlines->stamp_ns[task]) break;
        deadlines_put(deadlines, place, deadlines->heap[child]);
    }
    deadlines_put(deadlines, place, task);
}

void deadlines_add(struct deadlines *deadlines, int task, int64_t stamp_ns) {
    assert(deadlines->place[task] == NOWHERE);
    if (stamp_ns == INT64_MAX) return;
    deadlines->stamp_ns[task] = stamp_ns;
    deadlines->heap[deadlines->count++] = task;
    rise(deadlines, deadlines->count - 1);
}

void deadlines_remove(struct deadlines *deadlines, int task) {
    int place = deadlines->place[task];
    if (place == NOWHERE) return;
    deadlines->place[task] = NOWHERE;
    int last = deadlines->heap[--deadlines->count];
    if (last == task) return;
    deadlines_put(deadlines, place, last);
    rise(deadlines, place);
    sink(deadlines, deadlines->place[last]);
}

int64_t deadlines_first_ns(const struct deadlines *deadlines) {
    return deadlines->count ? stamp_at(deadlines, 0) : INT64_MAX;
}

int deadlines_first(const struct deadlines *deadlines) {
    return deadlines->count ? deadlines->heap[0] : NOWHERE;
}
