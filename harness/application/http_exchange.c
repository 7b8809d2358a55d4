#include "harness/application/http_exchange.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/scheduler/grown.h"

/* A connection on the loopback interface is made, or refused, at once; the limit is for a machine that stands still. */
enum { CONNECT_LIMIT_MS = 10000, PIECE = 16384, STATUS_AT = 9, STATUS_BYTES = 3 };

static bool is_connected(int fd) {
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
    return errno == EINPROGRESS && is_connected(fd);
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
    *exchange = HTTP_NONE;
    exchange->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (exchange->fd >= 0 && port_connect(exchange->fd, port) && all_sent(exchange->fd, request)) return true;
    http_exchange_close(exchange);
    return false;
}

void http_exchange_close(struct http_exchange *exchange) {
    if (exchange->fd >= 0) close(exchange->fd);
    free(exchange->answer);
    *exchange = HTTP_NONE;
}

/* The value of a field of the head, without the spaces before it; no bytes: there is none. */
static struct span field_find(struct span head, const char *name) {
    size_t length = strlen(name);
    for (const char *line = head.bytes; line;
         line = memmem(line, (size_t)(head.bytes + head.length - line), "\r\n", 2)) {
        line += line == head.bytes ? 0 : 2;
        size_t left = (size_t)(head.bytes + head.length - line);
        if (left <= length || strncasecmp(line, name, length) != 0) continue;
        const char *value = line + length;
        while (value < head.bytes + head.length && *value == ' ') value++;
        return (struct span){value, (size_t)(head.bytes + head.length - value)};
    }
    return (struct span){0};
}

static bool has_last_chunk(struct span body) {
    static const char LAST[] = "0\r\n\r\n";
    size_t length = sizeof LAST - 1;
    return body.length >= length && memcmp(body.bytes + body.length - length, LAST, length) == 0 &&
           (body.length == length || body.bytes[body.length - length - 1] == '\n');
}

/* Whether the answer is whole without the end of its connection. */
static bool is_whole(struct span head, struct span body) {
    struct span length = field_find(head, "content-length:"), coding = field_find(head, "transfer-encoding:");
    if (coding.length > 0) return has_last_chunk(body);
    return length.length > 0 && body.length >= strtoul(length.bytes, NULL, 10); /* the head ends with a line's end */
}

static int status_read(struct span head) {
    int status = 0;
    if (head.length < STATUS_AT + STATUS_BYTES || memcmp(head.bytes, "HTTP/1.", 7) != 0) return 0;
    for (size_t at = STATUS_AT; at < STATUS_AT + STATUS_BYTES; at++) {
        if (head.bytes[at] < '0' || head.bytes[at] > '9') return 0;
        status = 10 * status + (head.bytes[at] - '0');
    }
    return status;
}

enum http_progress http_exchange_hear(struct http_exchange *exchange, struct http_answer *answer) {
    bool ended = false;
    for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR);) {
        exchange->answer = grown(exchange->answer, exchange->length + PIECE, &exchange->room, 1);
        got = recv(exchange->fd, exchange->answer + exchange->length, PIECE, 0);
        ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
        if (got > 0) exchange->length += (size_t)got;
    }
    const char *end = memmem(exchange->answer, exchange->length, "\r\n\r\n", 4);
    if (!end) return ended ? HTTP_LOST : HTTP_WAITS;
    struct span head = {exchange->answer, (size_t)(end - exchange->answer) + 2};
    struct span body = {end + 4, exchange->length - head.length - 2};
    answer->status = status_read(head);
    answer->body = body;
    if (is_whole(head, body)) return HTTP_DONE;
    bool has_end = field_find(head, "content-length:").length > 0 || field_find(head, "transfer-encoding:").length > 0;
    if (!ended) return HTTP_WAITS;
    return has_end ? HTTP_LOST : HTTP_DONE;
}
