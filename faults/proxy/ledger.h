/* Which reply answers which request, on one connection.
 *
 * Replies come in the order of their requests, so two counters are all that is needed to know; only what somebody wants
 * to know about a request - a rule, mostly - is written down as a *mark* under the request's number. Messages that
 * nobody asked for (pushes) are told apart: in RESP3 by their type, in RESP2 by their first word while the connection
 * is subscribed to something. A request to (un)subscribe is answered by one confirmation for each channel. */
#ifndef LOCKSTORM_LEDGER_H
#define LOCKSTORM_LEDGER_H

#include "faults/proxy/resp.h"

enum mark_kind {
    MARK_RULE,     /* number: the id of a rule that waits for the reply */
    MARK_SWALLOW,  /* the reply is not for the client: its request was made twice here */
    MARK_CONFIRMS, /* number: of confirmations still to come, 0: not known before the first one */
    MARK_RESET,    /* the connection starts anew */
    MARK_OPAQUE,   /* from here on the server sends what is no reply */
};

struct mark {
    uint64_t request;
    int64_t number;
    uint8_t kind;
    uint8_t group; /* of MARK_CONFIRMS: what is subscribed to */
};

enum { LEDGER_CHANNELS, LEDGER_PATTERNS, LEDGER_SHARDS, LEDGER_GROUPS };

struct ledger {
    uint64_t asked, answered; /* requests sent, and those whose reply has come */
    struct mark *marks;       /* in the order of their requests */
    size_t first, count, room;
    size_t swallows;                      /* of the marks, MARK_SWALLOW */
    bool opaque_asked;                    /* the latest request makes the connection opaque */
    int64_t subscriptions[LEDGER_GROUPS]; /* as the server has confirmed them */
    bool arrays_push;                     /* confirmations came as arrays: so do pushes (RESP2) */
    size_t *memory_bytes;                 /* somebody's count of what is allocated here */
};

void ledger_close(struct ledger *ledger);

/* A request goes to the server. Returns whether it will be answered at all; its number is then asked - 1. */
bool ledger_ask(struct ledger *ledger, const struct resp_scanner *request);
/* Adds a mark to the latest request, or to an earlier one that has none after it. */
void ledger_mark(struct ledger *ledger, uint64_t request, enum mark_kind kind, int64_t number);
/* The latest two requests go to the server in the opposite order. */
void ledger_swap(struct ledger *ledger);

/* What a message from the server is. The marks are valid until ledger_settle. */
struct answer {
    bool push;
    bool swallow;
    bool is_last; /* the last message that answers its request */
    const struct mark *marks;
    size_t count;
};
struct answer ledger_answer(struct ledger *ledger, const struct resp_scanner *reply);
/* Forgets what it needed to know about an answered request. To be called once for each answer. */
void ledger_settle(struct ledger *ledger, const struct answer *answer);

/* The next message is no reply: the connection serves another purpose now. */
bool ledger_is_opaque(const struct ledger *ledger);

#endif
