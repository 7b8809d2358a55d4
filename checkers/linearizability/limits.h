/* What a search may cost: memory and time that it never exceeds. Beyond either, these functions fail and the verdict is
 * inconclusive; nothing is guessed.
 *
 * Only memory that is taken through limits_resize counts: all that grows with the input. Code, stacks and buffers of
 * fixed size take some hundred KiB more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limits {
    uint64_t memory_bytes; /* 0: none */
    int64_t deadline_ns;   /* CLOCK_MONOTONIC, 0: none */
    int64_t time_ns;       /* from the beginning to the deadline, for messages */
    uint64_t used, peak;   /* bytes */
    unsigned asked;        /* calls of limits_late */
    char exceeded[96];     /* which limit was reached, in words; empty: none */
};

/* Time begins now. 0: no limit. */
void limits_begin(struct limits *limits, uint64_t memory_bytes, int64_t time_ns);

/* realloc within the limit: NULL, and `old` as it was, when it would be exceeded. The caller frees with limits_free and
 * the same size. */
void *limits_resize(struct limits *limits, void *old, size_t old_bytes, size_t new_bytes);
void limits_free(struct limits *limits, void *old, size_t bytes);

/* `count` numbers, all 0 (and memory for one at least); NULL when the limit would be exceeded. The caller frees them
 * with limits_numbers_free and the same count; NULL is nothing to free. */
uint32_t *limits_numbers(struct limits *limits, size_t count);
void limits_numbers_free(struct limits *limits, uint32_t *numbers, size_t count);

/* Makes room for one more in an array that has `count` entries and room for `room`; false when the limit forbids it. */
#define limits_more(limits, entries, count, room)                                                                      \
    limits_grow(limits, (void **)&(entries), sizeof *(entries), count, &(room))
bool limits_grow(struct limits *limits, void **entries, size_t size, size_t count, size_t *room);

/* Is a limit reached? It reads the clock only at every 1024th call, so it may be called for every event. */
bool limits_late(struct limits *limits);
