/* A file read byte by byte in bounded memory; messages name the number of a byte. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "checkers/linearizability/operations.h"

enum { TEXT_BUFFER = 1 << 16, TEXT_WORD = 256, TEXT_DEPTH = 1000, TEXT_END = -1 };

struct text {
    FILE *file;
    size_t at, end;
    uint64_t before; /* bytes of the file before the buffer */
    char error[256];
    unsigned char buffer[TEXT_BUFFER];
};

/* What comes of reading a file. */
enum parse_result {
    PARSE_DONE,
    PARSE_BAD, /* the file is malformed: text.error says how, and at which byte */
    PARSE_FULL /* a limit was reached: limits->exceeded */
};

void text_open(struct text *text, FILE *file);
uint64_t text_offset(const struct text *text);
/* Fills the buffer behind its unread bytes. False: the file has no more. */
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

/* Takes the next byte if it is this one. */
static inline bool text_takes(struct text *text, int byte) {
    bool takes = text_peek(text) == byte;
    text->at += takes;
    return takes;
}

static inline int text_next(struct text *text) {
    int byte = text_peek(text);
    if (byte != TEXT_END) text->at++;
    return byte;
}

/* "byte N: ..." ; returns false. The first message stays. */
bool text_fail(struct text *text, uint64_t offset, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same as the result of a reader. */
#define text_bad(...) (text_fail(__VA_ARGS__) ? PARSE_DONE : PARSE_BAD)

/* Fails at the next byte, which is unexpected "in a word", or with the end of the file. */
bool text_unexpected(struct text *text, const char *where);

/* Reads a word as a whole number. False: it is not one of 64 bits. */
bool text_number(const char *word, int64_t *number);

/* The place of a word in a list that ends with NULL; -1: it is not there. */
int text_place(const char *word, const char *const *words);

/* Hands the event at a byte to the operations. */
enum parse_result text_event(struct text *text, struct operations *operations, const struct operation_event *event,
                             uint64_t offset);

/* The readers of formats: edn.c, atlas.c. */
enum parse_result edn_read(struct text *text, struct operations *operations);
enum parse_result atlas_read(struct text *text, struct operations *operations);
