#include "faults/proxy/server_wait.h"
#include "harness/library_service/message_format.h"

static bool begins_with(const struct resp_scanner *scanner, const char *const *names) {
    for (; *names; names++)
        if (resp_word_is(&scanner->words[0], *names)) return true;
    return false;
}

/* Its command, and the script that this runs. */
static uint64_t resp_request_sort(const struct resp_scanner *scanner, struct span bytes) {
    static const char *const SCRIPTS[] = {"EVAL", "EVALSHA", "FCALL", NULL};
    struct resp_cursor cursor = resp_elements(scanner, bytes);
    struct span command = {0}, script = {0};
    if (!resp_next(&cursor, &command)) return 0;
    if (begins_with(scanner, SCRIPTS)) resp_next(&cursor, &script);
    return sort_add(sort_add(0, command), script);
}

static void request_describe(const struct resp_scanner *scanner, struct span bytes, struct queued_message *message) {
    static const char *const PLAIN[] = {"HELLO", "CLIENT",  "AUTH", "SELECT",   "PING",
                                        "INFO",  "COMMAND", "ECHO", "READONLY", NULL};
    static const char *const PUSHES[] = {"SUBSCRIBE",    "PSUBSCRIBE",   "SSUBSCRIBE", "UNSUBSCRIBE",
                                         "PUNSUBSCRIBE", "SUNSUBSCRIBE", NULL};
    static const char *const SIMPLE[] = {"SET",     "GET",  "DEL",     "EXISTS", "PEXPIRE", "PTTL", "EVAL",
                                         "EVALSHA", "INCR", "HGETALL", "TTL",    "EXPIRE",  "TIME", NULL};
    message->is_simple = begins_with(scanner, SIMPLE);
    message->is_plain = begins_with(scanner, PLAIN);
    message->subscribes = begins_with(scanner, PUSHES);
    message->sort = message->is_plain ? 0 : resp_request_sort(scanner, bytes);
    message->wait_ms = server_wait_ms(scanner, bytes);
}

static enum message_found resp_find(struct format_state *state, struct span bytes, enum resp_side side,
                                    struct queued_message *message) {
    size_t used = 0;
    if (state->scanned == 0) resp_start(&state->scanner, side);
    enum resp_result result =
        resp_scan(&state->scanner, bytes.bytes + state->scanned, bytes.length - state->scanned, &used);
    state->scanned += used;
    if (result != RESP_WHOLE) return result == RESP_BROKEN ? MESSAGE_BROKEN : MESSAGE_PART;
    *message = (struct queued_message){.length = state->scanned};
    state->scanned = 0;
    return MESSAGE_WHOLE;
}

static enum message_found resp_find_request(struct format_state *state, struct span bytes,
                                            struct queued_message *message) {
    enum message_found found = resp_find(state, bytes, RESP_REQUESTS, message);
    if (found == MESSAGE_WHOLE) request_describe(&state->scanner, (struct span){bytes.bytes, message->length}, message);
    return found;
}

static enum message_found resp_find_reply(struct format_state *state, struct span bytes,
                                          struct queued_message *message) {
    return resp_find(state, bytes, RESP_REPLIES, message);
}

const struct message_format RESP_REQUEST_FORMAT = {"RESP", resp_find_request};
const struct message_format RESP_REPLY_FORMAT = {"RESP", resp_find_reply};
