#include "harness/application/http_exchange.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection on the loopback interface is made, or refused, at once; the limit is for a machine that stands still. */
enum { CONNECT_LIMIT_MS = 10000, PIECE = 16384, STATUS_AT = 9, STATUS_BYTES = 3 };

static bool connection_stands(int fd) {
    struct pollfd made = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    return poll(&made, 1, CONNECT_LIMIT_MS) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
           error == 0;
}

static bool port_connect(int fd, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return true;
    return errno == EINPROGRESS && connection_stands(fd);
}

static bool all_sent(int fd, struct span bytes) {
    while (bytes.length > 0) {
        ssize_t sent = send(fd, bytes.bytes, bytes.length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return false; /* also when the socket is full: the service does not run now */
        if (sent <= 0) continue;
        bytes.bytes += sent;
        bytes.length -= (size_t)sent;
    }
    return true;
}

bool http_exchange_begin(struct http_exchange *exchange, int port, struct span request) {
    static const struct message_format HTTP1_REPLY_FORMAT = {"HTTP/1.1", http1_reply_find};
    *exchange = HTTP_NONE;
    byte_queue_begin(&exchange->bytes, &HTTP1_REPLY_FORMAT);
    exchange->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (exchange->fd >= 0 && port_connect(exchange->fd, port) && all_sent(exchange->fd, request)) return true;
    http_exchange_close(exchange);
    return false;
}

void http_exchange_close(struct http_exchange *exchange) {
    if (exchange->fd >= 0) close(exchange->fd);
    byte_queue_free(&exchange->bytes);
    *exchange = HTTP_NONE;
}

/* The status line and the head come with the first message of an answer. */
static void answer_begin(struct http_exchange *exchange, struct span bytes) {
    struct http_answer *answer = &exchange->answer;
    bool is_http = bytes.length >= STATUS_AT + STATUS_BYTES && memcmp(bytes.bytes, "HTTP/1.", 7) == 0;
    for (size_t at = STATUS_AT; is_http && at < STATUS_AT + STATUS_BYTES; at++) {
        is_http = bytes.bytes[at] >= '0' && bytes.bytes[at] <= '9';
        answer->status = is_http ? 10 * answer->status + (bytes.bytes[at] - '0') : 0;
    }
    exchange->has_begun = true;
}

static void body_add(struct http_answer *answer, struct span data) {
    size_t room = sizeof answer->body - 1 - answer->length;
    if (data.length > room) data.length = room;
    if (data.length > 0) memcpy(answer->body + answer->length, data.bytes, data.length);
    answer->length += data.length;
}

static void messages_take(struct http_exchange *exchange) {
    for (; exchange->bytes.count > 0; byte_queue_drop(&exchange->bytes)) {
        bool is_first = !exchange->has_begun;
        if (is_first) answer_begin(exchange, byte_queue_first(&exchange->bytes));
        body_add(&exchange->answer, http1_reply_data(byte_queue_first(&exchange->bytes), is_first));
    }
}

enum http_progress http_exchange_hear(struct http_exchange *exchange) {
    char bytes[PIECE];
    bool ended = false;
    for (ssize_t got = 1; !ended && (got > 0 || errno == EINTR);) {
        got = recv(exchange->fd, bytes, sizeof bytes, 0);
        ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
        if (got > 0) byte_queue_add(&exchange->bytes, bytes, (size_t)got);
        messages_take(exchange);
    }
    bool part = byte_queue_has_part(&exchange->bytes);
    if (exchange->has_begun && !exchange->bytes.state.in_chunks && !part) return HTTP_DONE;
    if (!ended && !exchange->bytes.broken) return HTTP_WAITS;
    struct span rest = {exchange->bytes.bytes, exchange->bytes.length};
    if (exchange->has_begun || !part || exchange->bytes.broken || http1_reply_has_length(rest)) return HTTP_LOST;
    byte_queue_end(&exchange->bytes);
    messages_take(exchange);
    return HTTP_DONE;
}
