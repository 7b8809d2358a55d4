/* messages FORMAT [REQUEST]: finds messages in standard input, which comes a piece at a time, and prints one JSON line
 * for each: its length, whether it is plain, whether it subscribes, its sort, and its limit. REQUEST: a file with the
 * request of PostgreSQL that they answer. Exit status: 0; 1 the bytes are not of this protocol; 2 there is no such
 * format or file. */
#include <stdio.h>
#include <string.h>

#include "harness/library_service/byte_queue.h"

enum { PIECE = 7 };

static const struct {
    const char *name;
    const struct message_format *format;
} FORMATS[] = {
    {"resp-requests", &RESP_REQUEST_FORMAT},           {"resp-replies", &RESP_REPLY_FORMAT},
    {"grpc-requests", &GRPC_REQUEST_FORMAT},           {"grpc-replies", &GRPC_REPLY_FORMAT},
    {"postgres-requests", &POSTGRES_REQUEST_FORMAT},   {"postgres-replies", &POSTGRES_REPLY_FORMAT},
    {"zookeeper-requests", &ZOOKEEPER_REQUEST_FORMAT}, {"zookeeper-replies", &ZOOKEEPER_REPLY_FORMAT},
};

static bool request_take(const char *path, struct format_state *answers) {
    static char bytes[1 << 12];
    FILE *file = fopen(path, "re");
    if (!file) return false;
    postgres_answer_expect(answers, (struct span){bytes, fread(bytes, 1, sizeof bytes, file)});
    fclose(file);
    return true;
}

int main(int argc, char **argv) {
    static struct byte_queue queue;
    char bytes[PIECE];
    size_t each = 0;
    while (each < sizeof FORMATS / sizeof FORMATS[0] && (argc < 2 || strcmp(FORMATS[each].name, argv[1]) != 0)) each++;
    if (each == sizeof FORMATS / sizeof FORMATS[0]) return 2;
    byte_queue_begin(&queue, FORMATS[each].format);
    if (argc > 2 && !request_take(argv[2], &queue.state)) return 2;
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, stdin)) > 0;) byte_queue_add(&queue, bytes, got);
    while (queue.count > 0) {
        const struct queued_message *message = &queue.messages[0];
        printf("{\"length\": %zu, \"plain\": %s, \"subscribes\": %s, \"sort\": %llu, \"wait_ms\": %lld}\n",
               message->length, message->is_plain ? "true" : "false", message->subscribes ? "true" : "false",
               (unsigned long long)message->sort, (long long)message->wait_ms);
        byte_queue_drop(&queue);
    }
    int status = queue.broken;
    byte_queue_free(&queue);
    return status;
}
