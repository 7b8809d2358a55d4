#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/library_service/message_format.h"

/* HTTP/1.1 (RFC 9112), as clients of etcd's JSON gateway speak it. A request is a head, and a body of the length that
 * the head names; so is an answer. An answer in chunks has one message for each chunk, the first one with the head; the
 * last chunk, which is empty, belongs to the one before it when it is there. */

enum { LINE_END = 2, HEAD_MOST = 1 << 16, DIGITS_MOST = 7 };
static const char EMPTY_LINE[] = "\r\n\r\n", LAST_CHUNK[] = "0\r\n\r\n";
enum { EMPTY_LINE_BYTES = sizeof EMPTY_LINE - 1, LAST_CHUNK_BYTES = sizeof LAST_CHUNK - 1 };

/* With the empty line that ends it; no bytes: it is not whole. */
static struct span head_of(struct span bytes) {
    const char *end = memmem(bytes.bytes, bytes.length, EMPTY_LINE, EMPTY_LINE_BYTES);
    return (struct span){bytes.bytes, end ? (size_t)(end - bytes.bytes) + EMPTY_LINE_BYTES : 0};
}

/* What follows the name of a field of the head, without spaces; no bytes: it has no such field. */
static struct span field_value(struct span head, const char *name) {
    size_t length = strlen(name);
    for (size_t at = 0; at + LINE_END + length < head.length; at++) {
        const char *line = head.bytes + at + LINE_END;
        if (memcmp(head.bytes + at, EMPTY_LINE, LINE_END) != 0 || strncasecmp(line, name, length) != 0) continue;
        size_t value = at + LINE_END + length;
        while (head.bytes[value] == ' ') value++; /* the head ends with another sign */
        return (struct span){head.bytes + value, head.length - value};
    }
    return (struct span){0};
}

/* The number that these bytes begin with; -1: they begin with none, or one of too many digits. */
static long number_at(struct span bytes, int base) {
    char digits[DIGITS_MOST + 2] = {0}, *end;
    memcpy(digits, bytes.bytes, bytes.length < DIGITS_MOST + 1 ? bytes.length : DIGITS_MOST + 1);
    long number = strtol(digits, &end, base);
    return number >= 0 && end > digits && end <= digits + DIGITS_MOST ? number : -1;
}

static enum message_found up_to(size_t length, struct span bytes, struct queued_message *message) {
    *message = (struct queued_message){.length = length};
    return length <= bytes.length ? MESSAGE_WHOLE : MESSAGE_PART;
}

static enum message_found head_is_part(struct span bytes) {
    return bytes.length > HEAD_MOST ? MESSAGE_BROKEN : MESSAGE_PART;
}

enum message_found http1_request_find(struct span bytes, struct queued_message *message) {
    struct span head = head_of(bytes), value = field_value(head, "content-length:");
    long body = value.length > 0 ? number_at(value, 10) : 0;
    if (head.length == 0) return head_is_part(bytes);
    return body < 0 ? MESSAGE_BROKEN : up_to(head.length + (size_t)body, bytes, message);
}

/* The chunk that begins at `at`. */
static enum message_found chunk_find(struct format_state *state, struct span bytes, size_t at,
                                     struct queued_message *message) {
    struct span rest = {bytes.bytes + at, bytes.length - at};
    const char *line_end = memmem(rest.bytes, rest.length, EMPTY_LINE, LINE_END);
    if (!line_end) return rest.length > DIGITS_MOST + 1 ? MESSAGE_BROKEN : MESSAGE_PART;
    long size = number_at(rest, 16);
    if (size < 0) return MESSAGE_BROKEN;
    size_t end = at + (size_t)(line_end - rest.bytes) + LINE_END + (size_t)size + LINE_END;
    if (end > bytes.length) return MESSAGE_PART;
    bool ends = bytes.length - end >= LAST_CHUNK_BYTES && memcmp(bytes.bytes + end, LAST_CHUNK, LAST_CHUNK_BYTES) == 0;
    state->in_chunks = size > 0 && !ends;
    return up_to(size > 0 && ends ? end + LAST_CHUNK_BYTES : end, bytes, message);
}

enum message_found http1_reply_find(struct format_state *state, struct span bytes, struct queued_message *message) {
    if (state->in_chunks) return chunk_find(state, bytes, 0, message);
    struct span head = head_of(bytes), value = field_value(head, "content-length:");
    if (head.length == 0) return head_is_part(bytes);
    if (field_value(head, "transfer-encoding:").length > 0) return chunk_find(state, bytes, head.length, message);
    if (value.length == 0) return MESSAGE_PART; /* the end of the connection ends it */
    long body = number_at(value, 10);
    return body < 0 ? MESSAGE_BROKEN : up_to(head.length + (size_t)body, bytes, message);
}

/* The data of the chunk that these bytes begin with; no bytes: they begin with none. */
static struct span chunk_data(struct span bytes) {
    const char *line_end = memmem(bytes.bytes, bytes.length, EMPTY_LINE, LINE_END);
    long size = line_end ? number_at(bytes, 16) : -1;
    size_t begin = line_end ? (size_t)(line_end - bytes.bytes) + LINE_END : bytes.length;
    bool is_whole = size >= 0 && (size_t)size <= bytes.length - begin;
    return (struct span){bytes.bytes + begin, is_whole ? (size_t)size : 0};
}

struct span http1_reply_data(struct span message, bool is_first) {
    if (!is_first) return chunk_data(message);
    struct span head = head_of(message);
    struct span rest = {message.bytes + head.length, message.length - head.length};
    return field_value(head, "transfer-encoding:").length > 0 ? chunk_data(rest) : rest;
}

bool http1_reply_has_length(struct span bytes) {
    struct span head = head_of(bytes);
    return field_value(head, "content-length:").length > 0 || field_value(head, "transfer-encoding:").length > 0;
}
