#include "harness/library/library_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "faults/proxy/server_wait.h"
#include "harness/scheduler/clock.h"

enum { BACKLOG = 64, PIECE = 16384 };

/* --- doors --- */

static bool door_failed(struct link_door *door) {
    int error = errno;
    if (door->fd >= 0) close(door->fd);
    door->fd = -1;
    errno = error;
    return false;
}

static bool door_open_unix(struct link_door *door, const char *path) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path) return errno = ENAMETOOLONG, false;
    memcpy(at.sun_path, path, strlen(path) + 1);
    snprintf(door->address, sizeof door->address, "%s", path);
    door->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (door->fd < 0 || bind(door->fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(door->fd, BACKLOG) != 0)
        return door_failed(door);
    return true;
}

static bool door_open_tcp(struct link_door *door) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    door->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (door->fd < 0 || bind(door->fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(door->fd, BACKLOG) != 0 ||
        getsockname(door->fd, (struct sockaddr *)&at, &size) != 0)
        return door_failed(door);
    snprintf(door->address, sizeof door->address, "%d", ntohs(at.sin_port));
    return true;
}

bool link_door_open(struct link_door *door, const char *path) {
    *door = (struct link_door){.fd = -1, .is_tcp = path == NULL};
    return path ? door_open_unix(door, path) : door_open_tcp(door);
}

void link_door_close(struct link_door *door) {
    if (door->fd < 0) return;
    close(door->fd);
    if (!door->is_tcp) unlink(door->address);
    door->fd = -1;
}

/* --- connections --- */

bool link_accept(struct library_link *link, const struct link_door *door, struct node *node) {
    int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return false;
    if (door->is_tcp) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    *link = (struct library_link){.fd = fd, .block_until_ns = INT64_MAX};
    byte_queue_begin(&link->requests, RESP_REQUESTS);
    byte_queue_begin(&link->answers, RESP_REPLIES);
    node_connection_retarget(&link->server, node);
    return true;
}

void link_cut(struct library_link *link) {
    if (link->fd >= 0) close(link->fd);
    link->fd = -1;
}

void link_end(struct library_link *link) {
    link_cut(link);
    node_connection_close(&link->server);
    byte_queue_free(&link->requests);
    byte_queue_free(&link->answers);
    link->requests.count = link->answers.count = 0;
    link->block_until_ns = INT64_MAX;
    link->ended = true;
}

bool link_hear_program(struct library_link *link) {
    char bytes[PIECE];
    bool any = false;
    while (link->fd >= 0) {
        ssize_t got = recv(link->fd, bytes, sizeof bytes, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return any;
        any = true;
        if (got > 0) byte_queue_add(&link->requests, bytes, (size_t)got);
        else link_cut(link);
        if (link->requests.broken) node_give_up(link->server.node, "a program sends it what is not RESP");
    }
    return any;
}

bool link_hear_server(struct library_link *link) {
    char bytes[PIECE];
    bool any = false;
    if (link->ended || !link->server.context) return false;
    for (size_t got; (got = node_connection_poll_bytes(&link->server, bytes, sizeof bytes)) > 0; any = true) {
        int before = link->answers.count;
        byte_queue_add(&link->answers, bytes, got);
        if (!link->is_push) link->unanswered -= link->answers.count - before;
        link->block_until_ns = INT64_MAX;
    }
    if (link->fd < 0) /* nobody is there to hear it */
        while (link->answers.count > 0) byte_queue_drop(&link->answers);
    return any;
}

/* --- messages --- */

static bool begins_with(const struct queued_message *message, const char *const *names) {
    for (; *names; names++)
        if (resp_word_is(&message->scanner.words[0], *names)) return true;
    return false;
}

bool link_request_is_plain(const struct library_link *link) {
    static const char *const PLAIN[] = {"HELLO", "CLIENT", "AUTH", "SELECT", "PING", "INFO", "COMMAND", "ECHO", NULL};
    return link->requests.count > 0 && begins_with(&link->requests.messages[0], PLAIN);
}

void link_deliver_request(struct library_link *link, int64_t now_ns) {
    static const char *const PUSHES[] = {"SUBSCRIBE",    "PSUBSCRIBE",   "SSUBSCRIBE", "UNSUBSCRIBE",
                                         "PUNSUBSCRIBE", "SUNSUBSCRIBE", NULL};
    const struct queued_message *message = &link->requests.messages[0];
    struct span bytes = byte_queue_first(&link->requests);
    int64_t wait_ms = server_wait_ms(&message->scanner, bytes);
    if (begins_with(message, PUSHES)) link->is_push = true;
    if (wait_ms > 0) link->block_until_ns = now_ns + (wait_ms + 1) * CLOCK_NS_PER_MS;
    link->unanswered++;
    node_connection_send(&link->server, bytes.bytes, bytes.length);
    byte_queue_drop(&link->requests);
}

void link_refuse_request(struct library_link *link, const char *error) {
    char line[128];
    int length = snprintf(line, sizeof line, "-%s\r\n", error);
    byte_queue_drop(&link->requests);
    byte_queue_add(&link->answers, line, (size_t)length);
}

void link_deliver_answer(struct library_link *link) {
    struct span bytes = byte_queue_first(&link->answers);
    const char *at = bytes.bytes;
    for (size_t left = bytes.length; left > 0 && link->fd >= 0;) {
        ssize_t sent = send(link->fd, at, left, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) break; /* the program has closed it, or reads no more */
        at += sent;
        left -= (size_t)sent;
    }
    byte_queue_drop(&link->answers);
}
