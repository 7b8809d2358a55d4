/* Links: a place to listen, where it leads, and the connections that came that way. */
#ifndef LOCKSTORM_LINK_H
#define LOCKSTORM_LINK_H

#include "faults/proxy/address.h"
#include "faults/proxy/flow.h"

struct rule_list {
    struct rule **rules;
    size_t count;
};

/* What a link has had to do with its target since that was last told. */
enum dealing {
    DEALING_NONE,
    DEALING_HEARD,  /* the target has something to read, or may write again */
    DEALING_JOINED, /* it has a new connection to accept, too */
};

struct link {
    struct link *next; /* in the order added */
    struct proxy *proxy;
    char *name;
    uint32_t text;        /* index of the name in the history */
    uint32_t opaque_text; /* of the sentence that a connection has become opaque; 0: none has yet */
    struct address listen, target;
    ev_io io;
    bool plain;        /* carries something that is not RESP */
    bool stepped;      /* see link_step_all */
    bool accept_waits; /* stepped: somebody has come and was not looked at yet */
    bool paused;       /* accepts nobody until the machine has descriptors again */
    struct connection *connections;
    size_t connection_count;
    struct rule_list rules[DIRECTIONS]; /* that concern it, in the order added */
    struct rule_list awaiting;          /* those of them that look at requests and wait for the replies */
    uint64_t requests, replies, pushes, bytes[DIRECTIONS];
    enum dealing dealing;
};

/* Listens and adds it to the proxy's links; NULL with a sentence in *error. */
struct link *link_add(struct proxy *proxy, const char *name, const struct address *listen, const struct address *target,
                      bool plain, bool stepped, struct address_error *error);
/* On a stepped link, in virtual time and once replies may stay away, nothing happens when something comes, only when it
 * is asked for: link by link, connection by connection, in an order that does not depend on when the machine noticed.
 * How many of them there were; call it until there are none. */
size_t link_step_all(struct proxy *proxy);
/* Its connections are closed too. */
void link_remove(struct link *link);
/* Closes its connections, returns how many. */
size_t link_close_connections(struct link *link);
/* Rules have come or gone. */
void link_refresh(struct link *link);
/* Its target has this to deal with, and whatever it had before. */
void link_deal(struct link *link, enum dealing dealing);
/* How many links have had to do with their targets. */
size_t link_count_targets(const struct proxy *proxy);
/* Names of links in the history, and of rules. */
uint32_t proxy_text(struct proxy *proxy, const char *text);

/* After anything that may have changed what a connection waits for; closes it when there is nothing left. It must not
 * be used after that. */
void connection_review(struct connection *connection);
/* Says in the history, once, that the connection is passed on byte by byte from here on. */
void connection_note_opaque(struct connection *connection, const char *why);

#endif
