#include "harness/library_service/message_format.h"

enum { LENGTH_BYTES = 4, HEAD_BYTES = 8, PACKET_MOST = 1 << 22, PING_XID = -2, AUTH_XID = -4 };

/* Requests and answers begin with their number; the first message of each side, which opens the session, has none. */
static enum message_found zookeeper_find(struct format_state *state, struct span bytes,
                                         struct queued_message *message) {
    if (bytes.length < LENGTH_BYTES) return MESSAGE_PART;
    uint32_t length = four_bytes(bytes.bytes);
    if (length > PACKET_MOST) return MESSAGE_BROKEN;
    if (bytes.length < LENGTH_BYTES + length) return MESSAGE_PART;
    int32_t number = length >= HEAD_BYTES ? (int32_t)four_bytes(bytes.bytes + LENGTH_BYTES) : 0;
    bool opens = !state->has_begun;
    *message = (struct queued_message){.length = LENGTH_BYTES + length};
    /* Behind the number of a request is the number of what it asks for. */
    message->sort = length >= HEAD_BYTES ? four_bytes(bytes.bytes + HEAD_BYTES) : 0;
    message->is_plain = opens || number == PING_XID || number == AUTH_XID;
    return MESSAGE_WHOLE;
}

const struct message_format ZOOKEEPER_REQUEST_FORMAT = {"ZooKeeper's protocol", zookeeper_find};
const struct message_format ZOOKEEPER_REPLY_FORMAT = {"ZooKeeper's protocol", zookeeper_find};
