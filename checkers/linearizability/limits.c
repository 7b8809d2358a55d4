#include "checkers/linearizability/limits.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOK_EVERY = 1024, FEWEST_MORE = 4 };

static int64_t limits_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void limits_begin(struct limits *limits, uint64_t memory_bytes, int64_t time_ns) {
    *limits = (struct limits){.memory_bytes = memory_bytes, .time_ns = time_ns};
    limits->deadline_ns = time_ns ? limits_now_ns() + time_ns : 0;
}

void *limits_resize(struct limits *limits, void *old, size_t old_bytes, size_t new_bytes) {
    assert(old_bytes <= limits->used);
    uint64_t used = limits->used - old_bytes + new_bytes;
    if (limits->memory_bytes && used > limits->memory_bytes) {
        snprintf(limits->exceeded, sizeof limits->exceeded, "it would take more than the %.1f MiB of memory it may use",
                 (double)limits->memory_bytes / (1 << 20));
        return NULL;
    }
    void *changed = realloc(old, new_bytes);
    if (!changed) {
        snprintf(limits->exceeded, sizeof limits->exceeded, "the machine has no memory left");
        return NULL;
    }
    limits->used = used;
    if (used > limits->peak) limits->peak = used;
    return changed;
}

void limits_free(struct limits *limits, void *old, size_t bytes) {
    assert(bytes <= limits->used);
    free(old);
    limits->used -= bytes;
}

uint32_t *limits_numbers(struct limits *limits, size_t count) {
    uint32_t *numbers = limits_resize(limits, NULL, 0, (count + 1) * sizeof *numbers);
    if (numbers) memset(numbers, 0, (count + 1) * sizeof *numbers);
    return numbers;
}

void limits_numbers_free(struct limits *limits, uint32_t *numbers, size_t count) {
    if (numbers) limits_free(limits, numbers, (count + 1) * sizeof *numbers);
}

bool limits_grow(struct limits *limits, void **entries, size_t size, size_t count, size_t *room) {
    if (count < *room) return true;
    size_t wanted = *room + *room / 2 + FEWEST_MORE;
    void *grown = limits_resize(limits, *entries, *room * size, wanted * size);
    if (!grown) return false;
    *entries = grown;
    *room = wanted;
    return true;
}

bool limits_late(struct limits *limits) {
    if (limits->exceeded[0]) return true;
    if (!limits->deadline_ns || ++limits->asked % LOOK_EVERY) return false;
    if (limits_now_ns() < limits->deadline_ns) return false;
    snprintf(limits->exceeded, sizeof limits->exceeded, "it would take longer than the %.3g s it may take",
             (double)limits->time_ns / 1e9);
    return true;
}
