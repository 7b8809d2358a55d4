#include "harness/library/byte_queue.h"

#include <stdlib.h>
#include <string.h>

void byte_queue_begin(struct byte_queue *queue, enum resp_side side) {
    queue->length = queue->scanned = 0;
    queue->count = 0;
    queue->broken = false;
    resp_start(&queue->scanner, side);
}

void byte_queue_free(struct byte_queue *queue) {
    free(queue->bytes);
    queue->bytes = NULL;
    queue->length = queue->room = 0;
}

static void messages_find(struct byte_queue *queue) {
    size_t at = 0;
    for (int each = 0; each < queue->count; each++) at += queue->messages[each].length;
    at += queue->scanned;
    while (at < queue->length && queue->count < BYTE_QUEUE_MESSAGES && !queue->broken) {
        size_t used = 0;
        enum resp_result result = resp_scan(&queue->scanner, queue->bytes + at, queue->length - at, &used);
        at += used;
        queue->scanned += used;
        if (result == RESP_BROKEN) queue->broken = true;
        if (result != RESP_WHOLE) return;
        queue->messages[queue->count++] = (struct queued_message){queue->scanned, queue->scanner};
        queue->scanned = 0;
        resp_start(&queue->scanner, (enum resp_side)queue->scanner.side);
    }
}

void byte_queue_add(struct byte_queue *queue, const char *bytes, size_t length) {
    if (queue->length + length > queue->room) {
        queue->room = (queue->length + length) * 2;
        queue->bytes = realloc(queue->bytes, queue->room);
        if (!queue->bytes) abort();
    }
    memcpy(queue->bytes + queue->length, bytes, length);
    queue->length += length;
    messages_find(queue);
}

struct span byte_queue_first(const struct byte_queue *queue) {
    return (struct span){queue->bytes, queue->count > 0 ? queue->messages[0].length : 0};
}

void byte_queue_drop(struct byte_queue *queue) {
    size_t length = queue->messages[0].length;
    queue->length -= length;
    memmove(queue->bytes, queue->bytes + length, queue->length);
    queue->count--;
    memmove(queue->messages, queue->messages + 1, (size_t)queue->count * sizeof queue->messages[0]);
    messages_find(queue);
}
