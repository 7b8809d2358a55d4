#include "harness/resp_service/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

static bool fail(struct address_error *error, const char *text, const char *reason) {
    snprintf(error->text, sizeof error->text, "%.120s: %s", text, reason);
    return false;
}

static bool parse_path(struct address *address, struct address_error *error) {
    struct sockaddr_un *socket = (struct sockaddr_un *)&address->storage;
    if (strlen(address->text) + 1 >= sizeof socket->sun_path)
        return fail(error, address->text, "the path of a unix socket has at most 106 bytes here; make it shorter");
    socket->sun_family = AF_UNIX;
    strcpy(socket->sun_path, address->text);
    address->length = sizeof *socket;
    return true;
}

static bool parse_host(struct address *address, struct address_error *error) {
    char text[ADDRESS_TEXT];
    strcpy(text, address->text);
    char *host = text, *colon = strrchr(text, ':');
    static const char WANTED[] = "neither a path that begins with / nor host:port with a numeric host or localhost";
    if (!colon || colon == text || colon[1] == '\0') return fail(error, address->text, WANTED);
    *colon = '\0';
    if (strlen(colon + 1) > 5 || atoi(colon + 1) > UINT16_MAX)
        return fail(error, address->text, "a port is at most 65535");
    if (host[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found;
    if (getaddrinfo(strcmp(host, "localhost") ? host : "127.0.0.1", colon + 1, &hints, &found) != 0)
        return fail(error, address->text, WANTED);
    memcpy(&address->storage, found->ai_addr, found->ai_addrlen);
    address->length = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool address_parse(const char *text, size_t length, struct address *address, struct address_error *error) {
    *address = (struct address){.length = 0};
    if (length == 0 || length >= sizeof address->text || memchr(text, '\0', length)) {
        snprintf(error->text, sizeof error->text, "an address has 1 to %d bytes, none of them zero", ADDRESS_TEXT - 1);
        return false;
    }
    memcpy(address->text, text, length);
    return address->text[0] == '/' ? parse_path(address, error) : parse_host(address, error);
}

static bool is_for_this_machine(const struct address *address) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->storage;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->storage;
    if (address->storage.ss_family == AF_INET) return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return address->storage.ss_family == AF_UNIX || IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void write_port(struct address *address) {
    char host[INET6_ADDRSTRLEN], port[8];
    if (getnameinfo((struct sockaddr *)&address->storage, address->length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        abort();
    bool is_v6 = address->storage.ss_family == AF_INET6;
    snprintf(address->text, sizeof address->text, is_v6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* A unix socket gets its name when it already listens: a client that sees the file can connect. */
static bool listen_at_path(struct address *address, int fd) {
    struct sockaddr_un hidden = *(struct sockaddr_un *)&address->storage;
    strcat(hidden.sun_path, "~");
    if (bind(fd, (struct sockaddr *)&hidden, sizeof hidden) < 0) return false;
    bool good = listen(fd, BACKLOG) == 0 && link(hidden.sun_path, address->text) == 0;
    int reason = errno == EEXIST ? EADDRINUSE : errno;
    unlink(hidden.sun_path);
    errno = reason;
    return good;
}

static bool listen_at_port(struct address *address, int fd) {
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address->storage, address->length) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&address->storage, &address->length) < 0)
        return false;
    write_port(address);
    return true;
}

int address_listen(struct address *address, struct address_error *error) {
    if (!is_for_this_machine(address)) {
        fail(error, address->text, "only this machine may connect: listen at 127.0.0.1, [::1] or a unix socket");
        return -1;
    }
    bool is_path = address->storage.ss_family == AF_UNIX;
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (is_path ? listen_at_path(address, fd) : listen_at_port(address, fd))) return fd;
    fail(error, address->text, strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

enum address_state address_connect(const struct address *address, int *fd) {
    *fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0) return ADDRESS_FAILED;
    if (connect(*fd, (const struct sockaddr *)&address->storage, address->length) == 0) return ADDRESS_CONNECTED;
    if (errno == EINPROGRESS) return ADDRESS_CONNECTING;
    /* EAGAIN: a unix socket's queue is full */
    enum address_state state = errno == EAGAIN         ? ADDRESS_BUSY
                               : errno == ECONNREFUSED ? ADDRESS_REFUSED
                                                       : ADDRESS_FAILED;
    close(*fd);
    *fd = -1;
    return state;
}

void address_set_nodelay(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails on a unix socket, which needs no such option */
}

void address_remove(const struct address *address) {
    if (address->storage.ss_family == AF_UNIX) unlink(address->text);
}
