/* Bytes of a stream that wait to go on, and where the messages in them end. */
#ifndef LOCKSTORM_BYTE_QUEUE_H
#define LOCKSTORM_BYTE_QUEUE_H

#include "faults/proxy/resp.h"

enum { BYTE_QUEUE_MESSAGES = 256 };

struct byte_queue {
    char *bytes; /* owned */
    size_t length, room;
    struct resp_scanner scanner; /* of the first bytes that belong to no whole message */
    size_t scanned;              /* bytes that it has seen */
    struct queued_message {
        size_t length;
        struct resp_scanner scanner; /* at the end of the message: its first words */
    } messages[BYTE_QUEUE_MESSAGES];
    int count;   /* of whole messages, which are at the front */
    bool broken; /* the bytes are not RESP */
};

void byte_queue_begin(struct byte_queue *queue, enum resp_side side);
void byte_queue_free(struct byte_queue *queue);
/* Adds a copy of the bytes, and finds the messages in them. */
void byte_queue_add(struct byte_queue *queue, const char *bytes, size_t length);
/* The oldest whole message, which stays the queue's; no bytes: there is none. */
struct span byte_queue_first(const struct byte_queue *queue);
/* Drops the oldest whole message. */
void byte_queue_drop(struct byte_queue *queue);

#endif
