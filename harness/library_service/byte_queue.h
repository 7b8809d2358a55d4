/* Bytes of a stream that wait to go on, and where the messages in them end. */
#pragma once

#include "harness/library_service/message_format.h"

enum { BYTE_QUEUE_MESSAGES = 256 };

struct byte_queue {
    const struct message_format *format;
    char *bytes; /* owned */
    size_t length, room;
    struct format_state state;
    struct queued_message messages[BYTE_QUEUE_MESSAGES];
    int count;   /* of whole messages, which are at the front */
    bool broken; /* the bytes are not of this protocol */
};

void byte_queue_begin(struct byte_queue *queue, const struct message_format *format);
void byte_queue_free(struct byte_queue *queue);
/* Adds a copy of the bytes, and finds the messages in them. */
void byte_queue_add(struct byte_queue *queue, const char *bytes, size_t length);
/* What is left of a stream that has ended is a message, too. */
void byte_queue_end(struct byte_queue *queue);
/* Whether the oldest message only opens the connection or keeps it up. */
static inline bool byte_queue_is_plain(const struct byte_queue *queue) {
    return queue->count > 0 && queue->messages[0].is_plain;
}
/* Whether the bytes end in the midst of a message. */
bool byte_queue_has_part(const struct byte_queue *queue);
/* The oldest whole message, which stays the queue's; no bytes without one. */
struct span byte_queue_first(const struct byte_queue *queue);
/* Drops the oldest whole message. */
void byte_queue_drop(struct byte_queue *queue);
