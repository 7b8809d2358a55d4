/* A file read byte by byte in bounded memory, whose every byte has a number that messages can name. */
#ifndef LOCKSTORM_CHECKERS_TEXT_H
#define LOCKSTORM_CHECKERS_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "checkers/operations.h"

enum { TEXT_BUFFER = 1 << 16, TEXT_WORD = 256, TEXT_DEPTH = 1000, TEXT_END = -1 };

struct text {
    FILE *file;
    size_t at, end;
    uint64_t before; /* bytes of the file before the buffer */
    char error[256];
    unsigned char buffer[TEXT_BUFFER];
};

/* What comes out of a reader. */
enum outside_result {
    OUTSIDE_READ,
    OUTSIDE_BAD, /* the file is not what it should be: text.error says what, and at which byte */
    OUTSIDE_FULL /* a limit was reached: limits->exceeded */
};

void text_open(struct text *text, FILE *file);
uint64_t text_offset(const struct text *text);
/* Reads on behind the bytes of the buffer that are not taken yet; false: there is nothing more. */
bool text_fill(struct text *text);

/* The next byte, which stays; TEXT_END. */
static inline int text_peek(struct text *text) {
    return text->at < text->end || text_fill(text) ? text->buffer[text->at] : TEXT_END;
}

/* The one after it. */
static inline int text_peek_second(struct text *text) {
    while (text->end - text->at < 2)
        if (!text_fill(text)) return TEXT_END;
    return text->buffer[text->at + 1];
}

static inline int text_next(struct text *text) {
    int byte = text_peek(text);
    if (byte != TEXT_END) text->at++;
    return byte;
}

/* "byte N: ..." ; returns false. The first message stays. */
bool text_fail(struct text *text, uint64_t offset, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A whole number in 64 bits; false: the word is none. */
bool text_number(const char *word, int64_t *number);

/* Hands an event to the operations; `offset` is where it stands. */
enum outside_result text_event(struct text *text, struct operations *operations, const struct told_event *event,
                               uint64_t offset);

#endif
