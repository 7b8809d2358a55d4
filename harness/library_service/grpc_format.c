#include <string.h>

#include "harness/library_service/message_format.h"

/* In HTTP/2 a message ends with the frame that carries data, or that ends its stream: a call without a stream has one
 * request and one answer, whose trailers belong to it when they are there; a stream has one message for each. */

enum { FRAME_HEAD = 9, FRAME_MOST = 1 << 24 };
enum frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_PRIORITY = 2,
    FRAME_RESET = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_GO_AWAY = 7,
    FRAME_WINDOW = 8,
    FRAME_CONTINUATION = 9,
};
enum { FLAG_END_STREAM = 1 };
static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static const char HTTP1[] = "HTTP/1.";
enum { PREFACE_BYTES = sizeof PREFACE - 1, HTTP1_BYTES = sizeof HTTP1 - 1 };

struct http2_frame {
    size_t length; /* with its head; 0: it is not whole */
    unsigned char type, flags;
    uint32_t stream;
};

static struct http2_frame frame_at(struct span bytes, size_t at) {
    struct http2_frame frame = {0};
    if (bytes.length - at < FRAME_HEAD) return frame;
    const char *head = bytes.bytes + at;
    size_t length = FRAME_HEAD + (size_t)three_bytes(head);
    if (bytes.length - at < length) return frame;
    return (struct http2_frame){length, (unsigned char)head[3], (unsigned char)head[4], four_bytes(head + 5)};
}

static bool is_upkeep(const struct http2_frame *frame) {
    return frame->type == FRAME_PRIORITY || frame->type == FRAME_SETTINGS || frame->type == FRAME_PING ||
           frame->type == FRAME_WINDOW;
}

static bool is_end(const struct http2_frame *frame) {
    return frame->type == FRAME_DATA || frame->type == FRAME_RESET || frame->type == FRAME_GO_AWAY ||
           (frame->type == FRAME_HEADERS && frame->flags & FLAG_END_STREAM);
}

/* Frames of upkeep, up to the first other one. */
static size_t upkeep_length(struct span bytes) {
    size_t at = 0;
    for (struct http2_frame frame; (frame = frame_at(bytes, at)).length > 0 && is_upkeep(&frame);) at += frame.length;
    return at;
}

static size_t call_length(struct span bytes) {
    size_t at = 0;
    struct http2_frame frame;
    do {
        frame = frame_at(bytes, at);
        if (frame.length == 0) return 0;
        at += frame.length;
    } while (!is_end(&frame));
    struct http2_frame next = frame_at(bytes, at);
    bool trails = next.length > 0 && next.type == FRAME_HEADERS && next.stream == frame.stream &&
                  next.flags & FLAG_END_STREAM && frame.type == FRAME_DATA;
    return trails ? at + next.length : at;
}

static enum message_found grpc_find(struct span bytes, struct queued_message *message) {
    size_t upkeep = upkeep_length(bytes);
    *message = (struct queued_message){.length = upkeep > 0 ? upkeep : call_length(bytes), .is_plain = upkeep > 0};
    return message->length > 0 ? MESSAGE_WHOLE : MESSAGE_PART;
}

/* Whether the bytes begin as `text` does, as far as they go. */
static bool agrees(struct span bytes, const char *text, size_t length) {
    return memcmp(bytes.bytes, text, bytes.length < length ? bytes.length : length) == 0;
}

/* The first line of HTTP/1.1. In HTTP/2 names are compressed, each connection in its own way: there the length tells
 * calls apart, as those of one method differ in numbers of the same length. */
static uint64_t grpc_request_sort(const struct format_state *state, struct span bytes) {
    const char *end = state->is_http1 ? memchr(bytes.bytes, '\r', bytes.length) : NULL;
    return end ? sort_add(0, (struct span){bytes.bytes, (size_t)(end - bytes.bytes)}) : bytes.length;
}

static enum message_found grpc_find_request(struct format_state *state, struct span bytes,
                                            struct queued_message *message) {
    if (!state->has_begun && agrees(bytes, PREFACE, PREFACE_BYTES)) {
        *message = (struct queued_message){.length = PREFACE_BYTES, .is_plain = true};
        return bytes.length >= PREFACE_BYTES ? MESSAGE_WHOLE : MESSAGE_PART;
    }
    if (!state->has_begun) state->is_http1 = bytes.bytes[0] >= 'A' && bytes.bytes[0] <= 'Z'; /* its method */
    if (!state->has_begun && !state->is_http1) return MESSAGE_BROKEN;
    enum message_found found = state->is_http1 ? http1_request_find(bytes, message) : grpc_find(bytes, message);
    if (found == MESSAGE_WHOLE) message->sort = grpc_request_sort(state, (struct span){bytes.bytes, message->length});
    return found;
}

static enum message_found grpc_find_reply(struct format_state *state, struct span bytes,
                                          struct queued_message *message) {
    if (!state->has_begun) state->is_http1 = agrees(bytes, HTTP1, HTTP1_BYTES); /* too few bytes are no frame either */
    return state->is_http1 ? http1_reply_find(state, bytes, message) : grpc_find(bytes, message);
}

const struct message_format GRPC_REQUEST_FORMAT = {"HTTP", grpc_find_request};
const struct message_format GRPC_REPLY_FORMAT = {"HTTP", grpc_find_reply};
