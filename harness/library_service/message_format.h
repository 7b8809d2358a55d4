/* How messages are found in the bytes of a connection between a library and its server, for each service's protocol.
 *
 * A message is what a schedule lets go on at once: a request as a whole, and an answer as a whole. Bytes that only open
 * a connection or keep it up are messages, too, and *plain*: no schedule delays them.
 *
 * Sources: the RESP specification of Redis; PostgreSQL's documentation, "Frontend/Backend Protocol", Message Formats;
 * RFC 9113 (HTTP/2), section 4.1 and 6, and gRPC over HTTP/2; RFC 9112 (HTTP/1.1), section 6 and 7; ZooKeeper's
 * zookeeper.jute and ZooDefs.OpCode. */
#pragma once

#include "faults/proxy/resp.h"

struct queued_message {
    size_t length;   /* bytes */
    bool is_plain;   /* it opens a connection or keeps it up */
    bool subscribes; /* a request after which answers come that nobody has asked for */
    bool is_simple;  /* a request that the server answers at once, and that has an effect on no other connection unless
                        one waits for an answer there */
    uint64_t sort;   /* of a request: the same for those that ask for the same, of any lock: a command, a script */
    int64_t wait_ms; /* of a request: by its own clock the server answers after so long, if it has not before; 0: there
                        is no such limit */
};

/* What has been seen of a stream, from its beginning. */
struct format_state {
    bool has_begun; /* a whole message was found */
    /* RESP: */
    struct resp_scanner scanner; /* of the first bytes that belong to no whole message */
    size_t scanned;              /* number of bytes that it has seen */
    /* PostgreSQL: */
    bool has_started; /* messages have a type from here on */
    int flushed;      /* parts that the answer to a Flush has; 0: an answer ends when the server is ready again */
    /* HTTP: */
    bool is_http1;  /* and not HTTP/2 */
    bool in_chunks; /* of an answer the head was found, and not the last chunk */
};

enum message_found {
    MESSAGE_PART,   /* the bytes are the beginning of a message */
    MESSAGE_WHOLE,  /* they begin with a whole one */
    MESSAGE_BROKEN, /* they are not of this protocol */
};

struct message_format {
    const char *title; /* of the protocol */
    /* `bytes`, at least one, begin where the last whole message has ended; what was there at the last call is there
     * again, with more behind it. Fills in *message when one is whole. */
    enum message_found (*find)(struct format_state *state, struct span bytes, struct queued_message *message);
};

extern const struct message_format RESP_REQUEST_FORMAT, RESP_REPLY_FORMAT;
extern const struct message_format GRPC_REQUEST_FORMAT, GRPC_REPLY_FORMAT;
extern const struct message_format ZOOKEEPER_REQUEST_FORMAT, ZOOKEEPER_REPLY_FORMAT;
extern const struct message_format POSTGRES_REQUEST_FORMAT, POSTGRES_REPLY_FORMAT;

/* A request goes to the server whose answers have this state. One that ends with Flush, as asyncpg sends to prepare a
 * statement, is answered without the message that the server is ready. */
void postgres_answer_expect(struct format_state *answers, struct span request);

/* The formats of HTTP/2 hand connections to these that begin with HTTP/1.1, which clients of etcd's JSON gateway
 * speak. */
enum message_found http1_request_find(struct span bytes, struct queued_message *message);
enum message_found http1_reply_find(struct format_state *state, struct span bytes, struct queued_message *message);
/* What a message of an answer, its first one or a later one, has of the body. */
struct span http1_reply_data(struct span message, bool is_first);
/* Whether the head of an answer, with which the bytes begin, says where the answer ends. If not, the end of the
 * connection ends it. */
bool http1_reply_has_length(struct span bytes);

/* Adds these bytes to a sort, which is 0 at first (FNV-1a, 64 bits). */
static inline uint64_t sort_add(uint64_t sort, struct span bytes) {
    if (sort == 0) sort = 0xcbf29ce484222325u;
    for (size_t at = 0; at < bytes.length; at++) sort = (sort ^ (unsigned char)bytes.bytes[at]) * 0x100000001b3u;
    return sort;
}

/* A whole number in network order: of four bytes, and of three. */
static inline uint32_t four_bytes(const char *bytes) {
    const unsigned char *at = (const unsigned char *)bytes;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline void four_bytes_put(char *at, uint32_t number) {
    for (int each = 0; each < 4; each++) at[each] = (char)(number >> (24 - 8 * each) & 255);
}

static inline uint32_t three_bytes(const char *bytes) {
    const unsigned char *at = (const unsigned char *)bytes;
    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}
