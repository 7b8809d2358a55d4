/* The state of the proxy: links, their connections, the two flows of each connection, and what they share.
 *
 * Which file works on what: link.c opens and closes links and connections, flow.c writes one direction,
 * message_reader.c reads it message by message, disposition.c decides on each message, rule_set.c adds and removes
 * rules.
 *
 * Times are in ns of the trial's monotonic clock. A link owns its connections, a connection its flows, a flow its
 * chunks; the proxy owns links and rules. */
#pragma once

#include <ev.h>

#include "faults/proxy/rule.h"
#include "harness/resp_service/address.h"
#include "harness/scheduler/actor.h"
#include "harness/scheduler/timer_heap.h"

enum { READ_SIZE = 128 << 10 };

struct proxy {
    struct ev_loop *loop;
    struct actor actor;
    struct timer_heap timers; /* in virtual time the scheduler reads the earliest moment, and sends SETTLE */
    ev_timer due;             /* in real time: for that moment */
    struct rule *rules;       /* in the order added, removed ones too */
    uint32_t rule_ids;
    struct proxy_link *links;
    ev_timer retry; /* for what the machine could not do at once: connect to a full queue, accept without descriptors */
    size_t memory_bytes;        /* of all chunks, heads and marks: what waits and what is remembered */
    size_t connections, opaque; /* open connections, and how many of them are opaque */
    char *buffer;               /* MESSAGE_HEAD + READ_SIZE bytes, used by one flow at a time while it reads */
};

struct rule_list {
    struct rule **rules;
    size_t count;
};

/* What has happened between a link and its target since that was last reported; a later one includes the earlier. */
enum target_activity {
    TARGET_IDLE,
    TARGET_HAS_INPUT,      /* the target has something to read, or may write again */
    TARGET_HAS_CONNECTION, /* it has a new connection to accept, too */
};

enum link_option {
    LINK_RESP,
    LINK_PLAIN,         /* carries something that is not RESP */
    LINK_PATIENT,       /* that, and a connection waits for a target that does not listen yet */
    LINK_PLAIN_STEPPED, /* no RESP, either; see link_step_all */
    LINK_STEPPED,       /* RESP; see link_step_all */
    LINK_TIMED,         /* that, and servers' own limits of time are deadlines (server_wait.h) */
};

/* A place to listen, where it leads, and the connections that came that way. */
struct proxy_link {
    struct proxy_link *next; /* in the order added */
    struct proxy *proxy;
    char *name;
    uint32_t text;        /* index of the name in the history */
    uint32_t opaque_text; /* index of the note that a connection has become opaque; 0: none has yet */
    struct address listen, target;
    ev_io io;
    enum link_option option;
    bool accept_pending; /* stepped: a connection has come and was not accepted yet */
    bool paused;         /* accepts no connection until the machine has descriptors again */
    struct proxy_connection *connections;
    size_t connection_count;
    struct rule_list rules[DIRECTIONS]; /* that concern it, in the order added */
    struct rule_list awaiting;          /* those of them that look at requests and wait for the replies */
    uint64_t requests, replies, pushes, bytes[DIRECTIONS];
    enum target_activity activity;
};

enum chunk_kind {
    CHUNK_BYTES,
    CHUNK_END,   /* the stream ends here: no more is written in this direction */
    CHUNK_CLOSE, /* both sides are closed */
    CHUNK_RESET, /* both sides are closed, a TCP connection with a reset */
};

/* Bytes that wait to be written, or an end of the stream that waits for its turn. */
struct chunk {
    struct chunk *next;
    struct flow *flow;
    struct rule *holder; /* NULL: it is not held */
    struct chunk *held_before, *held_after;
    int64_t due_ns;         /* 0: at once */
    uint64_t message_bytes; /* length of the message that the holder holds; 0 for raw bytes */
    size_t length, sent;
    enum chunk_kind kind;
    char bytes[];
};

struct chunk_queue {
    struct chunk *first, *last;
    size_t bytes;
};

/* What becomes of the message that is being read. */
enum disposition {
    DISPOSITION_UNDECIDED,
    DISPOSITION_PASS,
    DISPOSITION_HOLD,
    DISPOSITION_SWALLOW,
    DISPOSITION_DUPLICATE,
    DISPOSITION_REORDER,
    DISPOSITION_TRUNCATE,
    DISPOSITION_RESET,
    DISPOSITION_HALF_CLOSE,
    DISPOSITION_BLACK_HOLE,
};

/* One direction of a connection; flow.h describes how it is written. */
struct flow {
    struct proxy_connection *connection;
    enum direction direction;
    struct timer timer; /* of the first chunk, when that is delayed */

    bool opaque;        /* not RESP, or no longer */
    bool source_ended;  /* nothing more will be read */
    bool input_closed;  /* what is read from now on is swallowed */
    bool end_written;   /* the receiver's side has been shut down */
    bool receiver_gone; /* writing fails: the receiver has closed */
    bool receiver_full; /* the socket takes no more for now */

    struct resp_scanner scanner;
    enum disposition disposition;
    struct rule *rule;      /* the rule that decided, NULL: none */
    bool in_matcher;        /* the reply matcher has counted the message */
    int64_t delay_ns;       /* of the message */
    double ns_per_byte;     /* of the message, by rate rules */
    int64_t busy_until_ns;  /* rate: when what was sent so far has passed */
    uint64_t truncate_left; /* bytes of the message that are still delivered */

    struct rule *black_hole; /* the rule that swallows this direction, NULL: none */
    bool black_hole_fired;   /* ... and has been recorded for it */
    bool lost;               /* a black hole has swallowed bytes */
    bool end_lost;           /* ... and the end of the stream */

    char *head; /* of a message that is not decided, MESSAGE_HEAD bytes at most */
    size_t head_length, head_capacity;
    const char *run; /* bytes in the read buffer that may be written and are not yet */
    size_t run_length;
    struct chunk_queue queue;
    struct chunk_queue aside; /* the second copy of a message, or a message that goes after the next one */
    bool aside_is_waiting;    /* it goes after the next one */
    bool aside_has_request;   /* ... and has a number in the reply matcher */
};

enum { SIDE_CLIENT = 0, SIDE_SERVER = 1, SIDES = 2 };
/* How a connection is to be closed at its next review. */
enum closing { CLOSING_NONE, CLOSING_CLOSE, CLOSING_RESET };

/* A connection with its two directions; link.c opens and closes it. */
struct proxy_connection {
    struct proxy_connection *next, **place; /* of its link */
    struct proxy_link *link;
    struct proxy *proxy;
    ev_io io[SIDES];
    struct flow flows[DIRECTIONS];
    struct reply_matcher matcher;
    struct timer server_wait; /* timed: when the server answers by itself */
    bool connected, opaque_counted;
    bool server_blocked;       /* what the server writes is not read for now */
    int pending_events[SIDES]; /* stepped: what has come and was not dealt with yet */
    enum closing closing;
};

/* For a proxy whose actor is filled in. */
void proxy_open(struct proxy *proxy);
/* Only when it has no links and no rules. */
void proxy_close(struct proxy *proxy);

int64_t proxy_now_ns(const struct proxy *proxy);

/* The index of a text in the history: names of links and rules, notes. */
uint32_t proxy_text(struct proxy *proxy, const char *text);

/* Adds to what the link's target has to deal with. */
void proxy_link_add_activity(struct proxy_link *link, enum target_activity activity);
