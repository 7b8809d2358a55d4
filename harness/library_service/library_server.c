#include "harness/library_service/library_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/resp_service/address.h"
#include "harness/scheduler/clock.h"

enum { STATUS_INCONCLUSIVE = 3, START_LIMIT_MS = 120000 };

_Noreturn void server_give_up(const struct library_server *server, const char *reason) {
    fprintf(stderr, "the %s server at %s: %s\n", server->kind->service, server->address, reason);
    exit(STATUS_INCONCLUSIVE);
}

const struct server_kind *server_kind_named(const char *service) {
    static const struct server_kind *const KINDS[] = {&REDIS_KIND, &CLUSTER_KIND,  &SENTINEL_KIND,
                                                      &ETCD_KIND,  &POSTGRES_KIND, &ZOOKEEPER_KIND};
    for (size_t each = 0; each < sizeof KINDS / sizeof KINDS[0]; each++)
        if (strcmp(KINDS[each]->service, service) == 0) return KINDS[each];
    return NULL;
}

void server_open(struct library_server *server) {
    server->control = -1;
    if (server->kind->is_still) node_open_still(&server->node, server->address);
    else if (!server->kind->is_hosted) {
        node_open(&server->node, server->address, server->start);
        node_hurry(&server->node, false);
    }
}

void server_close(struct library_server *server) {
    if (server->kind->is_hosted) server->kind->end(server);
    else node_close(&server->node);
}

/* --- time --- */

static int64_t server_now_ns(const struct library_server *server) {
    return shared_page_mono_ns(server->page);
}

int64_t server_deadline_ns(const struct library_server *server) {
    return server->kind->is_hosted && server->runs ? hosted_deadline_ns(&server->program) : INT64_MAX;
}

bool server_has_news(const struct library_server *server) {
    return server->kind->is_hosted && server->runs &&
           (server_deadline_ns(server) <= server_now_ns(server) || hosted_has_news(&server->program));
}

static void hosted_settle(struct library_server *server) {
    while (server_has_news(server))
        if (!hosted_run(&server->program)) server_give_up(server, server->program.reason);
}

void server_settle(struct library_server *server) {
    if (server->kind->is_hosted) hosted_settle(server);
    else node_settle(&server->node);
}

void server_clock_moved(struct library_server *server) {
    if (!server->kind->is_hosted && !server->kind->is_still)
        node_wall_set(&server->node, shared_page_wall_ns(server->page));
}

void server_clock_jump(struct library_server *server, int64_t step_ns) {
    if (server->kind->is_hosted) atomic_fetch_add(&server->slot->wall_offset_ns, step_ns);
    else (void)node_clock_jump(&server->node, step_ns);
}

/* Starts the program and lets time pass until the server answers without a client. */
static void hosted_server_begin(struct library_server *server) {
    int64_t until_ns = server_now_ns(server) + (int64_t)START_LIMIT_MS * CLOCK_NS_PER_MS;
    if (!hosted_start(&server->program, server->start, server->page, server->slot, server->seed, server->log))
        server_give_up(server, server->program.reason);
    server->runs = true;
    do {
        if (!hosted_run(&server->program)) server_give_up(server, server->program.reason);
        hosted_settle(server);
        if (server->kind->answers_now(server)) return;
        int64_t next_ns = server_deadline_ns(server);
        if (next_ns == INT64_MAX) server_give_up(server, "it waits for something before it answers");
        atomic_store(&server->page->mono_ns, next_ns);
    } while (server_now_ns(server) <= until_ns);
    server_give_up(server, "it did not answer within 120 s of its time");
}

void server_reset(struct library_server *server, uint64_t seed) {
    if (!server->kind->is_hosted) {
        if (!server->kind->is_still) node_reset(&server->node, false);
        return;
    }
    server->slot->wall_offset_ns = 0;
    if (!server->runs) hosted_server_begin(server);
    hosted_seed(&server->program, seed);
    server->kind->flush(server);
}

/* --- hosted servers --- */

void hosted_server_end(struct library_server *server) {
    if (server->control >= 0) close(server->control);
    server->control = -1;
    hosted_end(&server->program);
    server->runs = false;
}

/* A connection that is waiting to be accepted is one already, so a server that stands still is connected to. */
int server_connect(const struct library_server *server) {
    struct address address;
    struct address_error error;
    bool good = address_parse(server->address, strlen(server->address), &address, &error);
    int fd = good ? socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (!good) errno = ENAMETOOLONG;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address.storage, address.length) != 0) {
        close(fd);
        return -1;
    }
    if (fd >= 0) address_set_nodelay(fd);
    return fd;
}

static bool send_all(int fd, struct span bytes) {
    while (bytes.length > 0) {
        ssize_t sent = send(fd, bytes.bytes, bytes.length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return false;
        if (sent <= 0) continue;
        bytes.bytes += sent;
        bytes.length -= (size_t)sent;
    }
    return true;
}

size_t server_exchange(struct library_server *server, int fd, struct span request, char *answer, size_t room) {
    size_t length = 0;
    if (!send_all(fd, request)) return 0;
    for (ssize_t got; length < room; length += (size_t)got) {
        server_settle(server);
        while ((got = recv(fd, answer + length, room - length, MSG_DONTWAIT)) < 0 && errno == EINTR) continue;
        if (got <= 0) break;
    }
    return length;
}

/* --- connections --- */

void channel_send(struct server_channel *channel, struct span bytes) {
    if (channel->ended) return;
    if (channel->fd < 0) channel->fd = server_connect(channel->server);
    if (channel->fd < 0) server_give_up(channel->server, strerror(errno));
    if (!send_all(channel->fd, bytes)) channel->ended = true;
}

size_t channel_poll(struct server_channel *channel, char *bytes, size_t room) {
    if (channel->fd < 0 || channel->ended) return 0;
    ssize_t got = recv(channel->fd, bytes, room, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    channel->ended = got <= 0;
    return got > 0 ? (size_t)got : 0;
}

void channel_close(struct server_channel *channel) {
    if (channel->fd < 0) return;
    close(channel->fd);
    channel->fd = -1;
    server_settle(channel->server);
}
