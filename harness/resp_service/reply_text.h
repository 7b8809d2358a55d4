/* The text of replies, in RESP. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Text that grows; zero before use, freed by reply_free. */
struct reply_text {
    char *bytes;
    size_t length, capacity;
};

/* Appends text as it is. */
void reply_write(struct reply_text *reply, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends an error of one line: bytes that would end the line become '?'. */
void reply_error(struct reply_text *reply, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a bulk string. */
void reply_bulk(struct reply_text *reply, const char *text);
/* Appends a name as a bulk string and its value as an integer. */
void reply_number(struct reply_text *reply, const char *name, uint64_t number);
void reply_free(struct reply_text *reply);
