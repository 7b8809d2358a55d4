/* Which reply answers which request, on one connection.
 *
 * Replies come in the order of their requests, so two counters match them. What has to be remembered about a
 * request until its reply comes - mostly that a rule waits for it - is a *mark* under the request's number. Messages
 * that answer no request (pushes) are recognised in RESP3 by their type, in RESP2 by their first word while the
 * connection is subscribed to something. A request to (un)subscribe is answered by one confirmation for each channel.
 */
#pragma once

#include "faults/proxy/resp.h"

enum mark_kind {
    MARK_RULE,     /* number: the id of a rule that waits for the reply */
    MARK_SWALLOW,  /* the reply is not for the client: the proxy has duplicated its request */
    MARK_CONFIRMS, /* number: confirmations still to come; 0: known only with the first one */
    MARK_RESET,    /* RESET: all subscriptions end */
    MARK_OPAQUE,   /* from this reply on the server sends something else than replies */
};

struct mark {
    uint64_t request;
    int64_t number;
    uint8_t kind;
    uint8_t group; /* of MARK_CONFIRMS: what is subscribed to */
};

enum { REPLY_MATCHER_CHANNELS, REPLY_MATCHER_PATTERNS, REPLY_MATCHER_SHARDS, REPLY_MATCHER_GROUPS };

struct reply_matcher {
    uint64_t requested, answered; /* requests that went to the server, and those whose reply has come */
    struct mark *marks;           /* in the order of their requests */
    size_t first, count, capacity;
    size_t swallows;                             /* number of marks MARK_SWALLOW */
    bool opaque_requested;                       /* the latest request makes the connection opaque */
    int64_t subscriptions[REPLY_MATCHER_GROUPS]; /* as the server has confirmed them */
    bool pushes_are_arrays;                      /* confirmations came as arrays: so do pushes (RESP2) */
    size_t *memory_bytes;                        /* of the proxy: this matcher adds what it allocates */
};

void reply_matcher_close(struct reply_matcher *matcher);

/* Counts a request that goes to the server. Returns whether it will be answered at all; its number is then
 * requested - 1. */
bool reply_matcher_add_request(struct reply_matcher *matcher, const struct resp_scanner *request);
/* Marks the latest request, or an earlier one after which none is marked. */
void reply_matcher_mark(struct reply_matcher *matcher, uint64_t request, enum mark_kind kind, int64_t number);
/* The latest two requests go to the server in the opposite order. */
void reply_matcher_swap(struct reply_matcher *matcher);

/* What a message from the server answers. The marks are valid until reply_matcher_finish_reply. */
struct matched_reply {
    bool push;    /* it answers no request */
    bool swallow; /* the client must not get it */
    bool is_last; /* the last message that answers its request */
    const struct mark *marks;
    size_t count;
};
struct matched_reply reply_matcher_match_reply(struct reply_matcher *matcher, const struct resp_scanner *reply);
/* Forgets the marks of a request that is answered. To be called once for each matched reply. */
void reply_matcher_finish_reply(struct reply_matcher *matcher, const struct matched_reply *matched);

/* Whether the server's next message is no reply: the connection serves another purpose now. */
bool reply_matcher_is_opaque(const struct reply_matcher *matcher);
