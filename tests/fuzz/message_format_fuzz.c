/* Fuzzes the formats of messages: messages lie within the bytes that came, and where they end does not depend on how
 * the bytes were cut (but for gRPC, whose trailers belong to an answer only if they are there with it). */
#include <stdlib.h>

#include "harness/library_service/byte_queue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void lengths_check(const struct byte_queue *queue) {
    size_t length = 0;
    for (int each = 0; each < queue->count; each++) {
        if (queue->messages[each].length == 0 || queue->messages[each].wait_ms < 0) abort();
        length += queue->messages[each].length;
    }
    if (length > queue->length) abort();
}

static void same_check(const struct byte_queue *one, const struct byte_queue *other) {
    if (one->count != other->count || one->broken != other->broken) abort();
    for (int each = 0; each < one->count; each++)
        if (one->messages[each].length != other->messages[each].length) abort();
}

/* What an answer by HTTP has of its body lies within the message. */
static void data_check(struct span message, bool is_first) {
    struct span data = http1_reply_data(message, is_first);
    if (data.length > message.length || data.bytes < message.bytes) abort();
    if (data.bytes + data.length > message.bytes + message.length) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct message_format *const FORMATS[] = {
        &RESP_REQUEST_FORMAT,     &RESP_REPLY_FORMAT,     &GRPC_REQUEST_FORMAT,      &GRPC_REPLY_FORMAT,
        &POSTGRES_REQUEST_FORMAT, &POSTGRES_REPLY_FORMAT, &ZOOKEEPER_REQUEST_FORMAT, &ZOOKEEPER_REPLY_FORMAT};
    static struct byte_queue whole, cut;
    if (size < 2) return 0;
    const struct message_format *format = FORMATS[data[0] % (sizeof FORMATS / sizeof FORMATS[0])];
    size_t piece = data[1] % 16 + 1, length = size - 2;
    const char *bytes = (const char *)data + 2;
    byte_queue_begin(&whole, format);
    byte_queue_begin(&cut, format);
    byte_queue_add(&whole, bytes, length);
    for (size_t at = 0; at < length; at += piece)
        byte_queue_add(&cut, bytes + at, length - at < piece ? length - at : piece);
    lengths_check(&whole);
    lengths_check(&cut);
    if (format->title != GRPC_REPLY_FORMAT.title) same_check(&whole, &cut);
    for (int is_first = 0; is_first < 2; is_first++) data_check(byte_queue_first(&whole), is_first);
    while (cut.count > 0) byte_queue_drop(&cut), lengths_check(&cut);
    byte_queue_end(&whole);
    lengths_check(&whole);
    byte_queue_free(&whole);
    byte_queue_free(&cut);
    return 0;
}
