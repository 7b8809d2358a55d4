/* One request by HTTP/1.1 (RFC 9112) to a service that listens on the loopback interface, and its answer. Each has a
 * connection of its own, which the answer ends. */
#pragma once

#include "harness/library_service/byte_queue.h"

enum { HTTP_BODY = 8192 };

struct http_answer {
    int status;           /* 200, 404, ...; 0: it is no HTTP */
    char body[HTTP_BODY]; /* its beginning; ends with a NUL */
    size_t length;        /* of what `body` has of it */
};

struct http_exchange {
    int fd; /* -1: no request is under way */
    struct byte_queue bytes;
    bool has_begun;            /* the head of the answer has come */
    struct http_answer answer; /* as far as it has come */
};

enum http_progress {
    HTTP_WAITS, /* more has to come */
    HTTP_DONE,  /* the answer is whole */
    HTTP_LOST   /* the connection has ended before */
};

/* Zeroed fields are not enough: fd has to be -1. */
static const struct http_exchange HTTP_NONE = {.fd = -1};

/* Connects to the port and sends all of the request. False: nobody listens there, or it is not taken. */
bool http_exchange_begin(struct http_exchange *exchange, int port, struct span request);
/* Takes what has come. */
enum http_progress http_exchange_hear(struct http_exchange *exchange);
/* Ends the connection, and frees what has come. */
void http_exchange_close(struct http_exchange *exchange);
