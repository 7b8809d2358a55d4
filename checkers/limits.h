/* What a search may cost: memory and time that it never exceeds. Past either, whoever asks is told so, and the verdict
 * is inconclusive; nothing is guessed.
 *
 * Memory is what is taken through limits_resize: all that grows with the input. Around it stand some hundred KiB of
 * code, stacks and buffers of fixed size. */
#ifndef LOCKSTORM_CHECKERS_LIMITS_H
#define LOCKSTORM_CHECKERS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limits {
    uint64_t memory_bytes; /* 0: none */
    int64_t deadline_ns;   /* CLOCK_MONOTONIC, 0: none */
    int64_t time_ns;       /* that the deadline leaves, for the sentence */
    uint64_t used, peak;   /* bytes */
    unsigned asked;        /* times that the clock was not looked at */
    char exceeded[96];     /* why it ended; empty: it did not */
};

/* Begins now. 0: no limit. */
void limits_begin(struct limits *limits, uint64_t memory_bytes, int64_t time_ns);

/* realloc within the limit: NULL, and `old` as it was, when it would be exceeded. The caller frees with limits_free and
 * the same size. */
void *limits_resize(struct limits *limits, void *old, size_t old_bytes, size_t new_bytes);
void limits_free(struct limits *limits, void *old, size_t bytes);

/* Makes room for one more in an array of `size`-byte entries; false when the limit forbids it. */
bool limits_grow(struct limits *limits, void **entries, size_t size, size_t count, size_t *room);

/* Is there no time left? Looks at the clock once in a while; call it as often as you like. */
bool limits_late(struct limits *limits);

#endif
