/* Where messages begin and end in a stream of RESP2 or RESP3, found as the bytes come. A scanner is a small struct that
 * allocates nothing, and its result does not depend on how the stream was cut. It tracks no depth: a count of the
 * elements still to come is enough to find an end, so nesting costs nothing and cannot overflow.
 *
 * A request is an array of bulk strings, or a line (an inline command). A reply is any value; attributes (|) in front
 * of it belong to it. What is neither, and the aggregates of unknown length (*?, $?), is RESP_BROKEN.
 *
 * Sources: the RESP specification of Redis; what Redis accepts as a request is processMultibulkBuffer and
 * processInlineBuffer of its networking.c (an empty array and an empty line are no request and get no reply). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that another object owns. */
struct span {
    const char *bytes;
    size_t length;
};

/* Compares with a text; the second without regard to case. */
bool span_is(struct span span, const char *text);
bool span_is_word(struct span span, const char *text);

enum resp_side { RESP_REQUESTS, RESP_REPLIES };
enum resp_result {
    RESP_MORE,   /* all bytes were used, the message goes on */
    RESP_WHOLE,  /* a message ends here; the next call begins another */
    RESP_BROKEN, /* this is not RESP; the scanner must not be used again */
};

enum { RESP_WORDS = 3, RESP_WORD = 24 };

/* One of the first elements of an array, push or inline command. */
struct resp_word {
    uint8_t length; /* RESP_WORD + 1: it is longer than that */
    char bytes[RESP_WORD];
};

struct resp_scanner {
    uint8_t side;  /* enum resp_side */
    uint8_t state; /* of resp.c */
    uint8_t digits;
    bool negative;
    char type;         /* of the message: its first byte, after any attributes; 'i' for an inline command */
    char element_type; /* of the element that is being read */
    bool carriage;     /* the last byte of a line was \r */
    uint8_t word;      /* the word that is being read; RESP_WORDS: no more of them */
    int64_t number;
    int64_t pending;  /* elements still to come, this one included */
    int64_t payload;  /* bytes of a bulk still to come */
    int64_t elements; /* of the message, if it is an aggregate (a map's pairs count once) or an inline command */
    uint64_t length;  /* bytes of the message so far; after RESP_WHOLE: of all of it */
    uint64_t lead;    /* bytes of attributes in front of it */
    struct resp_word words[RESP_WORDS];
};

void resp_start(struct resp_scanner *scanner, enum resp_side side);

/* Scans at most `length` bytes, up to the end of one message; *used is how many belong to it. */
enum resp_result resp_scan(struct resp_scanner *scanner, const char *bytes, size_t length, size_t *used);

/* Whether no message has begun. */
bool resp_is_between(const struct resp_scanner *scanner);

/* The length of the message as far as its headers announce it: exact when only the payload of its last element is
 * missing. */
uint64_t resp_announced_bytes(const struct resp_scanner *scanner);

/* Compares without regard to case. */
bool resp_word_is(const struct resp_word *word, const char *text);

/* Walks the elements of a message; `head` is its beginning, or all of it. */
struct resp_cursor {
    const char *at, *end;
    int64_t left;
    bool is_inline;
};
struct resp_cursor resp_elements(const struct resp_scanner *scanner, struct span head);
/* False: there are no more, or the next one is an aggregate or not completely in the head. A null has no bytes. */
bool resp_next(struct resp_cursor *cursor, struct span *element);
