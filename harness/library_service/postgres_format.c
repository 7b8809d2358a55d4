#include <string.h>

#include "harness/library_service/message_format.h"

/* A request goes up to the message that lets the server answer, an answer up to the one that says that the server is
 * ready for the next request; the answer to a Flush up to its last part. What a server says by itself (a notification,
 * a notice) is an answer of its own. */

enum { SORT_BYTES = 16 }; /* of a statement; numbers of locks come later in it */
enum { LENGTH_BYTES = 4, HEAD_BYTES = 1 + LENGTH_BYTES, MESSAGE_MOST = 1 << 24, PROTOCOL_3 = 196608 };

/* A message with a type at `at`: its length with its head, 0 when it is not whole. */
static size_t typed_length(struct span bytes, size_t at, bool *broken) {
    if (bytes.length - at < HEAD_BYTES) return 0;
    uint32_t length = four_bytes(bytes.bytes + at + 1);
    *broken = length < LENGTH_BYTES || length > MESSAGE_MOST;
    return *broken || bytes.length - at < 1 + (size_t)length ? 0 : 1 + (size_t)length;
}

static enum message_found find_opening(struct format_state *state, struct span bytes, struct queued_message *message) {
    if (bytes.length < 2 * LENGTH_BYTES) return MESSAGE_PART;
    uint32_t length = four_bytes(bytes.bytes);
    if (length < 2 * LENGTH_BYTES || length > MESSAGE_MOST) return MESSAGE_BROKEN;
    if (bytes.length < length) return MESSAGE_PART;
    state->has_started = four_bytes(bytes.bytes + LENGTH_BYTES) == PROTOCOL_3;
    *message = (struct queued_message){.length = length, .is_plain = true};
    return MESSAGE_WHOLE;
}

/* Messages up to one of these types. */
static enum message_found find_until(const char *ends, struct span bytes, struct queued_message *message) {
    size_t at = 0;
    bool broken = false;
    for (size_t length; at < bytes.length && (length = typed_length(bytes, at, &broken)) > 0; at += length) {
        if (!strchr(ends, bytes.bytes[at])) continue;
        *message = (struct queued_message){.length = at + length};
        return MESSAGE_WHOLE;
    }
    return broken ? MESSAGE_BROKEN : MESSAGE_PART;
}

/* Its first message's type, and the beginning of the statement, which stands behind its own name in a Parse ('P'). */
static uint64_t postgres_request_sort(struct span bytes) {
    struct span text = {bytes.bytes + HEAD_BYTES, bytes.length - HEAD_BYTES};
    const char *name_end = bytes.bytes[0] == 'P' ? memchr(text.bytes, '\0', text.length) : NULL;
    if (name_end) text = (struct span){name_end + 1, text.length - (size_t)(name_end + 1 - text.bytes)};
    if (text.length > SORT_BYTES) text.length = SORT_BYTES;
    return sort_add(sort_add(0, (struct span){bytes.bytes, 1}), text);
}

static enum message_found postgres_find_request(struct format_state *state, struct span bytes,
                                                struct queued_message *message) {
    if (!state->has_started) return find_opening(state, bytes, message);
    enum message_found found = find_until("QSXpHFcf", bytes, message);
    if (found != MESSAGE_WHOLE) return found;
    message->is_plain = bytes.bytes[0] == 'p';
    message->sort = postgres_request_sort((struct span){bytes.bytes, message->length});
    return found;
}

/* How many messages answer one of a request, besides rows. */
static int parts_of(char type, char what) {
    if (type == 'D') return what == 'S' ? 2 : 1; /* of a statement the parameters, too */
    return strchr("PBEC", type) != NULL;
}

void postgres_answer_expect(struct format_state *answers, struct span request) {
    int parts = 0;
    char last = '\0';
    bool broken = false;
    for (size_t at = 0, length; at < request.length && (length = typed_length(request, at, &broken)) > 0;
         at += length) {
        last = request.bytes[at];
        parts += parts_of(last, length > HEAD_BYTES ? request.bytes[at + HEAD_BYTES] : '\0');
    }
    answers->flushed = last == 'H' ? parts : 0;
}

/* An error ends it, too: the server then skips what comes before a Sync. */
static enum message_found find_flushed(int parts, struct span bytes, struct queued_message *message) {
    size_t at = 0;
    bool broken = false;
    for (size_t length; at < bytes.length && (length = typed_length(bytes, at, &broken)) > 0;) {
        char type = bytes.bytes[at];
        at += length;
        parts -= strchr("123tTnCsI", type) != NULL;
        if (parts > 0 && type != 'E') continue;
        *message = (struct queued_message){.length = at};
        return MESSAGE_WHOLE;
    }
    return broken ? MESSAGE_BROKEN : MESSAGE_PART;
}

/* What answers a request for encryption has no length. */
static bool is_refusal(const struct format_state *state, char type) {
    return !state->has_started && (type == 'N' || type == 'S' || type == 'G');
}

static enum message_found postgres_find_reply(struct format_state *state, struct span bytes,
                                              struct queued_message *message) {
    char type = bytes.bytes[0];
    if (is_refusal(state, type)) {
        *message = (struct queued_message){.length = 1, .is_plain = true};
        return MESSAGE_WHOLE;
    }
    state->has_started = true;
    if (state->flushed > 0 && type != 'A' && type != 'N') {
        enum message_found found = find_flushed(state->flushed, bytes, message);
        if (found == MESSAGE_WHOLE) state->flushed = 0;
        return found;
    }
    return find_until(type == 'A' || type == 'N' ? "AN" : "ZGW", bytes, message);
}

const struct message_format POSTGRES_REQUEST_FORMAT = {"PostgreSQL's protocol", postgres_find_request};
const struct message_format POSTGRES_REPLY_FORMAT = {"PostgreSQL's protocol", postgres_find_reply};
