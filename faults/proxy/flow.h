/* One direction of a connection: a stream of bytes that is read, decided on message by message (fate.h) and written, in
 * order. What cannot be written yet stands in a queue: because the receiver is slow, because a rule holds or delays it,
 * or because something in front of it waits - the end of the stream too. What can be written at once goes from the
 * proxy's one read buffer straight to the socket.
 *
 * Reading stops while more than QUEUE_MAX bytes wait, so a held direction costs the sender its buffers, not the proxy
 * its memory. */
#ifndef LOCKSTORM_FLOW_H
#define LOCKSTORM_FLOW_H

#include <ev.h>

#include "faults/proxy/agenda.h"
#include "faults/proxy/rule.h"
#include "harness/actor.h"

enum { QUEUE_MAX = 1 << 20, READ_SIZE = 128 << 10 };

struct proxy {
    struct ev_loop *loop;
    struct actor actor;
    struct agenda agenda;
    uint64_t seed;
    struct rule *rules; /* in the order added, removed ones too */
    uint32_t rule_ids;
    struct link *links;
    ev_timer retry; /* for what the machine could not do at once: connect to a full queue, accept without descriptors */
    size_t memory_bytes, connections,
        opaque;   /* memory: of everything that waits or remembers, per connection or rule */
    char *buffer; /* MESSAGE_HEAD + READ_SIZE bytes, for whoever reads */
};

enum chunk_kind {
    CHUNK_BYTES,
    CHUNK_END,   /* the stream ends here: no more is written in this direction */
    CHUNK_CLOSE, /* both sides are closed */
    CHUNK_RESET, /* ... abruptly */
};

struct chunk {
    struct chunk *next;
    struct flow *flow;
    struct rule *holder; /* NULL: it is not held */
    struct chunk *held_before, *held_after;
    int64_t due_ns;         /* 0: at once */
    uint64_t message_bytes; /* of the message that a holder holds */
    size_t length, sent;
    enum chunk_kind kind;
    char bytes[];
};

struct queue {
    struct chunk *first, *last;
    size_t bytes;
};

/* What becomes of the message that is being read. */
enum fate {
    FATE_OPEN, /* not decided */
    FATE_PASS,
    FATE_HOLD,
    FATE_SWALLOW,
    FATE_TWICE,
    FATE_LATER,
    FATE_TRUNCATE,
    FATE_RESET,
    FATE_HALF_CLOSE,
    FATE_BLACK_HOLE,
};

struct flow {
    struct connection *connection;
    enum direction direction;
    struct agenda_entry entry;

    bool opaque;       /* not RESP, or no longer */
    bool source_ended; /* nothing more will be read */
    bool shut;         /* nothing more is let in: what comes is swallowed */
    bool end_written;  /* the receiver has been told that this is all */
    bool deaf;         /* the receiver is gone */
    bool full;         /* the socket takes no more for now */

    struct resp_scanner scanner;
    enum fate fate;
    struct rule *rule; /* why */
    bool counted;      /* the message is in the ledger */
    int64_t delay_ns;  /* of the message */
    double ns_per_byte;
    int64_t busy_until_ns; /* rate: when what was sent so far has passed */
    uint64_t truncate_left;

    struct rule *black_hole; /* whoever swallows all that comes */
    bool black_hole_fired;   /* ... has been told of this direction */
    bool lost;               /* bytes have been swallowed by a black hole */
    bool end_lost;           /* ... the end of the stream, too */

    char *head; /* of a message that is not decided, MESSAGE_HEAD at most */
    size_t head_length, head_room;
    const char *run; /* bytes in the read buffer that may be written and are not yet */
    size_t run_length;
    struct queue queue;
    struct queue aside;    /* the second copy of a message, or what goes after the next one */
    bool aside_is_waiting; /* ... it goes after the next one */
    bool aside_was_asked;  /* ... and has a number in the ledger */
};

/* A connection with its two directions; link.c opens and closes it. */
enum { SIDE_CLIENT = 0, SIDE_SERVER = 1, SIDES = 2 };
enum doom { DOOM_NONE, DOOM_CLOSE, DOOM_RESET };
struct connection {
    struct connection *next, **place; /* of its link */
    struct link *link;
    struct proxy *proxy;
    ev_io io[SIDES];
    struct flow flows[DIRECTIONS];
    struct ledger ledger;
    bool connected, opaque_counted;
    bool server_waits;      /* what the server writes is not read for now */
    int events_wait[SIDES]; /* stepped: what has come and was not looked at yet */
    enum doom doom;         /* to be closed as soon as nobody looks at it */
};

void flow_open(struct flow *flow, struct connection *connection, enum direction direction, bool opaque);
void flow_close(struct flow *flow);

/* Reads once and deals with what came. */
void flow_read(struct flow *flow);
/* Writes what may be written. */
void flow_flush(struct flow *flow);
bool flow_wants_to_read(const struct flow *flow);

/* Puts a message, or a part of it, at the end: `holder` holds it (NULL: nobody), due_ns delays it (0: not). */
void flow_put(struct flow *flow, struct span bytes, struct rule *holder, int64_t due_ns);
void flow_put_end(struct flow *flow, enum chunk_kind kind);
/* Lets bytes of the read buffer pass; they are written together with their neighbours. */
void flow_pass(struct flow *flow, struct span bytes);
/* A copy to the side, and that copy to the end of the queue. */
void flow_put_aside(struct flow *flow, struct span bytes);
void flow_join_aside(struct flow *flow);
/* Throws away what waits; returns how many bytes. */
size_t flow_discard(struct flow *flow);
/* The end of the stream passes. */
void flow_end(struct flow *flow);

/* Lets a held message go. */
void chunk_release(struct chunk *chunk);

#endif
