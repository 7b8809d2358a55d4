#include "harness/library_service/byte_queue.h"

#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/grown.h"

void byte_queue_begin(struct byte_queue *queue, const struct message_format *format) {
    queue->format = format;
    queue->length = 0;
    queue->count = 0;
    queue->broken = false;
    queue->state = (struct format_state){0};
}

void byte_queue_free(struct byte_queue *queue) {
    free(queue->bytes);
    queue->bytes = NULL;
    queue->length = queue->room = 0;
}

static size_t whole_length(const struct byte_queue *queue) {
    size_t length = 0;
    for (int each = 0; each < queue->count; each++) length += queue->messages[each].length;
    return length;
}

static void messages_find(struct byte_queue *queue) {
    size_t at = whole_length(queue);
    while (at < queue->length && queue->count < BYTE_QUEUE_MESSAGES && !queue->broken) {
        struct queued_message *message = &queue->messages[queue->count];
        struct span rest = {queue->bytes + at, queue->length - at};
        enum message_found found = queue->format->find(&queue->state, rest, message);
        if (found == MESSAGE_BROKEN) queue->broken = true;
        if (found != MESSAGE_WHOLE) return;
        queue->state.has_begun = true;
        at += message->length;
        queue->count++;
    }
}

void byte_queue_add(struct byte_queue *queue, const char *bytes, size_t length) {
    if (length == 0) return;
    queue->bytes = grown(queue->bytes, queue->length + length, &queue->room, 1);
    memcpy(queue->bytes + queue->length, bytes, length);
    queue->length += length;
    messages_find(queue);
}

void byte_queue_end(struct byte_queue *queue) {
    size_t whole = whole_length(queue);
    if (whole < queue->length && queue->count < BYTE_QUEUE_MESSAGES)
        queue->messages[queue->count++] = (struct queued_message){.length = queue->length - whole};
}

bool byte_queue_has_part(const struct byte_queue *queue) {
    return whole_length(queue) < queue->length;
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
