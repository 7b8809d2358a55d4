/* The store: the protected resource (harness/resource.h) as a single-threaded RESP server on a unix socket. */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/resource.h"

enum { REQUEST_LIMIT = 1 << 20 };

struct store {
    struct resource resource;
    struct ev_loop *loop;
};

struct connection {
    ev_io io; /* first */
    struct store *store;
    redisReader *requests;
    struct resource_answers answers;
    size_t pending; /* bytes read since the last whole request */
    bool closing;
};

/* --- connections --- */

static void connection_close(struct connection *connection) {
    ev_io_stop(connection->store->loop, &connection->io);
    close(connection->io.fd);
    redisReaderFree(connection->requests);
    free(connection->answers.bytes);
    free(connection);
}

static bool connection_flush(struct connection *connection) {
    while (connection->answers.length) {
        ssize_t sent = send(connection->io.fd, connection->answers.bytes, connection->answers.length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) break;
        connection->answers.length -= (size_t)sent;
        memmove(connection->answers.bytes, connection->answers.bytes + sent, connection->answers.length);
    }
    if (connection->answers.length && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    int events = connection->answers.length ? EV_READ | EV_WRITE : EV_READ;
    ev_io_stop(connection->store->loop, &connection->io);
    ev_io_set(&connection->io, connection->io.fd, events);
    ev_io_start(connection->store->loop, &connection->io);
    return !connection->closing;
}

/* False: the connection is to be closed. */
static bool connection_read(struct connection *connection) {
    char bytes[16384];
    ssize_t got = recv(connection->io.fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0 || redisReaderFeed(connection->requests, bytes, (size_t)got) != REDIS_OK) return false;
    connection->pending += (size_t)got;
    void *request;
    while (!connection->closing && redisReaderGetReply(connection->requests, &request) == REDIS_OK && request) {
        connection->pending = 0;
        connection->closing = !resource_serve(&connection->store->resource, request, &connection->answers);
        freeReplyObject(request);
    }
    if (connection->requests->err || connection->pending > REQUEST_LIMIT) {
        resource_answer(&connection->answers, "-ERR not a RESP request, or longer than 1 MiB\r\n");
        connection->closing = true;
    }
    return true;
}

static void on_event(struct ev_loop *loop, ev_io *io, int events) {
    struct connection *connection = (struct connection *)io;
    (void)loop;
    bool open = !(events & EV_READ) || connection_read(connection);
    if (!open || !connection_flush(connection)) connection_close(connection);
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events) {
    struct store *store = io->data;
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    (void)events;
    if (fd < 0) return;
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) abort();
    connection->store = store;
    connection->requests = redisReaderCreate();
    ev_io_init(&connection->io, on_event, fd, EV_READ);
    ev_io_start(loop, &connection->io);
}

/* --- start --- */

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
    strcpy(address.sun_path, path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 512) < 0) return -1;
    return fd;
}

struct arguments {
    const char *history, *stage, *socket, *mode;
    long long actor, stranger, counter;
};

static bool parse(int argc, char **argv, struct arguments *arguments) {
    const struct option options[] = {
        {"history", required_argument, NULL, 'h'}, {"stage", required_argument, NULL, 's'},
        {"socket", required_argument, NULL, 'S'},  {"mode", required_argument, NULL, 'm'},
        {"actor", required_argument, NULL, 'a'},   {"stranger", required_argument, NULL, 'x'},
        {"counter", required_argument, NULL, 'c'}, {0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'h': arguments->history = optarg; break;
        case 's': arguments->stage = optarg; break;
        case 'S': arguments->socket = optarg; break;
        case 'm': arguments->mode = optarg; break;
        case 'a': arguments->actor = atoll(optarg); break;
        case 'x': arguments->stranger = atoll(optarg); break;
        case 'c': arguments->counter = atoll(optarg); break;
        default: return false;
        }
    }
    return arguments->history && arguments->stage && arguments->socket && arguments->mode && optind == argc;
}

int main(int argc, char **argv) {
    struct arguments arguments = {0};
    struct history_error error = {.text = "usage: store --history F --stage F --socket S --mode M --actor N"};
    struct store store = {0};
    struct resource *resource = &store.resource;
    if (parse(argc, argv, &arguments) && resource_mode_find(arguments.mode, &resource->mode)) {
        resource->actor.history = history_open(arguments.history, &error);
        resource->actor.stage = resource->actor.history ? stage_open(arguments.stage, &error) : NULL;
    }
    if (!resource->actor.stage) return fprintf(stderr, "store: %s\n", error.text), 2;
    resource->actor.id = (uint32_t)arguments.actor;
    resource->stranger = (uint32_t)arguments.stranger;
    resource->value[HISTORY_OBJECT_COUNTER] = arguments.counter;
    int fd = listen_at(arguments.socket);
    if (fd < 0) return fprintf(stderr, "store: %s: %s\n", arguments.socket, strerror(errno)), 2;
    store.loop = ev_default_loop(EVFLAG_AUTO);
    ev_io accepting = {0};
    ev_io_init(&accepting, on_accept, fd, EV_READ);
    accepting.data = &store;
    ev_io_start(store.loop, &accepting);
    ev_run(store.loop, 0);
    return 0;
}
