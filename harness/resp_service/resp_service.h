/* A RESP server in an event loop: callers send requests to a unix socket or a port, and each is answered in order. A
 * caller that does not read its replies, or that waits, is not read. */
#pragma once

#include <ev.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>

#include "harness/resp_service/address.h"
#include "harness/resp_service/reply_text.h"

struct resp_caller {
    ev_io io; /* first */
    struct resp_service *service;
    struct resp_caller *next, **place;
    redisReader *requests;
    struct reply_text reply; /* what was not sent yet */
    size_t pending;          /* bytes read since the last whole request */
    bool waits;              /* its next request is served after resp_caller_go_on */
    bool closing;            /* it is closed when its replies are sent */
};

/* Set by its owner: the loop and the functions. The rest is zero before resp_service_open. */
struct resp_service {
    struct ev_loop *loop;
    size_t caller_size; /* of a struct that begins with a struct resp_caller, and is zero for a new caller */
    /* Adds the answer to the caller's reply; may set `waits` and `closing`. */
    void (*serve)(struct resp_caller *caller, const redisReply *request);
    /* The connection has ended. False: it is closed by resp_caller_go_on. NULL: it is closed at once. */
    bool (*end)(struct resp_caller *caller);
    struct address address;
    ev_io accepting;
    struct resp_caller *callers; /* the latest first */
};

/* Listens at the address; false with a sentence in *error. */
bool resp_service_open(struct resp_service *service, const char *address, struct address_error *error);
/* Closes all connections. */
void resp_service_close(struct resp_service *service);

/* Sends what was added to the reply, and serves the next requests unless the caller waits. Afterwards it may be gone.
 */
void resp_caller_go_on(struct resp_caller *caller);
