#include "faults/proxy/server_wait.h"
#include "harness/library_service/message_format.h"

static void requests_begin(struct format_state *state) {
    *state = (struct format_state){0};
    resp_start(&state->scanner, RESP_REQUESTS);
}

static void replies_begin(struct format_state *state) {
    *state = (struct format_state){0};
    resp_start(&state->scanner, RESP_REPLIES);
}

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

static enum message_found resp_find(struct format_state *state, struct span bytes, struct queued_message *message) {
    size_t used = 0;
    enum resp_result result =
        resp_scan(&state->scanner, bytes.bytes + state->scanned, bytes.length - state->scanned, &used);
    state->scanned += used;
    if (result != RESP_WHOLE) return result == RESP_BROKEN ? MESSAGE_BROKEN : MESSAGE_PART;
    *message = (struct queued_message){.length = state->scanned};
    if (state->scanner.side == RESP_REQUESTS)
        request_describe(&state->scanner, (struct span){bytes.bytes, state->scanned}, message);
    state->scanned = 0;
    resp_start(&state->scanner, (enum resp_side)state->scanner.side);
    return MESSAGE_WHOLE;
}

const struct message_format RESP_REQUEST_FORMAT = {"RESP", requests_begin, resp_find};
const struct message_format RESP_REPLY_FORMAT = {"RESP", replies_begin, resp_find};
