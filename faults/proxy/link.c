#include "faults/proxy/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faults/proxy/fate.h"

enum { ACCEPT_AT_ONCE = 256 };
static const double RETRY_S = 0.002;

uint32_t proxy_text(struct proxy *proxy, const char *text) {
    const struct stage *stage = proxy->actor.stage;
    int64_t wall_ns = stage_wall_ns(stage);
    return history_text(proxy->actor.history, text, strlen(text), stage_mono_ns(stage), wall_ns);
}

void link_deal(struct link *link, enum dealing dealing) {
    if (link->dealing < dealing) link->dealing = dealing;
}

size_t link_count_targets(const struct proxy *proxy) {
    size_t count = 0;
    for (const struct link *link = proxy->links; link; link = link->next) count += link->dealing != DEALING_NONE;
    return count;
}

static void retry_later(struct proxy *proxy) {
    if (ev_is_active(&proxy->retry)) return;
    ev_timer_set(&proxy->retry, RETRY_S, 0);
    ev_timer_start(proxy->loop, &proxy->retry);
}

/* --- connections --- */

static void close_socket(struct ev_loop *loop, ev_io *io, bool abruptly) {
    if (io->fd < 0) return;
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (abruptly) setsockopt(io->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ev_io_stop(loop, io);
    close(io->fd);
}

/* The server hung up and knows, or no longer cares, that its client did: closing is no news to it. */
static bool both_ended(const struct connection *connection) {
    const struct flow *to_server = &connection->flows[TO_SERVER];
    return connection->flows[TO_CLIENT].source_ended && (to_server->end_written || to_server->deaf);
}

static void connection_close(struct connection *connection) {
    struct proxy *proxy = connection->proxy;
    for (int each = 0; each < DIRECTIONS; each++) flow_close(&connection->flows[each]);
    if (connection->io[SIDE_SERVER].fd >= 0 && !both_ended(connection)) link_deal(connection->link, DEALING_HEARD);
    for (int side = 0; side < SIDES; side++)
        close_socket(proxy->loop, &connection->io[side], connection->doom == DOOM_RESET);
    ledger_close(&connection->ledger);
    *connection->place = connection->next;
    if (connection->next) connection->next->place = connection->place;
    connection->link->connection_count--;
    proxy->connections--;
    proxy->opaque -= connection->opaque_counted;
    free(connection);
}

/* The server's direction is over when the server knows, or is gone; the client's also when nobody listens any more and
 * the server has said all: until then it could not finish what it was asked. */
static bool is_over(const struct connection *connection) {
    const struct flow *to_server = &connection->flows[TO_SERVER], *to_client = &connection->flows[TO_CLIENT];
    if (!to_server->end_written && !to_server->deaf) return false;
    return to_client->end_written || (to_client->deaf && to_client->source_ended);
}

static void watch(struct connection *connection, int side, bool read, bool write) {
    ev_io *io = &connection->io[side];
    int events = (read ? EV_READ : 0) | (write ? EV_WRITE : 0);
    int before = ev_is_active(io) ? io->events & (EV_READ | EV_WRITE) : 0;
    if (events == before || io->fd < 0) return;
    ev_io_stop(connection->proxy->loop, io);
    if (events == 0) return;
    ev_io_set(io, io->fd, events);
    ev_io_start(connection->proxy->loop, io);
}

void connection_review(struct connection *connection) {
    if (connection->doom || is_over(connection)) {
        connection_close(connection);
        return;
    }
    struct flow *to_server = &connection->flows[TO_SERVER], *to_client = &connection->flows[TO_CLIENT];
    bool read = flow_wants_to_read(to_client);
    if (read && connection->server_waits) link_deal(connection->link, DEALING_HEARD);
    connection->server_waits = !read;
    watch(connection, SIDE_CLIENT, flow_wants_to_read(to_server), to_client->full);
    watch(connection, SIDE_SERVER, read, to_server->full || !connection->connected);
}

void connection_note_opaque(struct connection *connection, const char *why) {
    struct link *link = connection->link;
    if (connection->opaque_counted) return;
    connection->opaque_counted = true;
    connection->proxy->opaque++;
    if (!link->opaque_text) {
        char text[512];
        snprintf(text, sizeof text, "%.256s: a connection is passed on byte by byte from here on: %s", link->name, why);
        link->opaque_text = proxy_text(connection->proxy, text);
    }
    actor_append(&connection->proxy->actor, (struct history_record){.kind = HISTORY_NOTE, .name = link->opaque_text});
}

static void connection_begin(struct connection *connection) {
    connection->connected = true;
    link_deal(connection->link, DEALING_JOINED);
    for (int side = 0; side < SIDES; side++) address_set_prompt(connection->io[side].fd);
    for (int each = 0; each < DIRECTIONS; each++) flow_flush(&connection->flows[each]);
}

static void connection_connect(struct connection *connection) {
    int fd;
    enum address_state state = address_connect(&connection->link->target, &fd);
    ev_io_set(&connection->io[SIDE_SERVER], fd, 0);
    if (fd >= 0) link_deal(connection->link, DEALING_JOINED);
    if (state == ADDRESS_FAILED) connection->doom = DOOM_CLOSE;
    if (state == ADDRESS_BUSY) retry_later(connection->proxy);
    if (state == ADDRESS_CONNECTED) connection_begin(connection);
    connection_review(connection);
}

static void connection_finish_connect(struct connection *connection) {
    int reason = 0;
    socklen_t length = sizeof reason;
    getsockopt(connection->io[SIDE_SERVER].fd, SOL_SOCKET, SO_ERROR, &reason, &length);
    if (reason) connection->doom = DOOM_CLOSE;
    else connection_begin(connection);
}

static bool is_stepped(const struct link *link) {
    const struct stage *stage = link->proxy->actor.stage;
    return link->stepped && stage->time == HISTORY_TIME_VIRTUAL && atomic_load(&stage->unreliable);
}

static void connection_work(struct connection *connection, int side, int events) {
    bool is_server = side == SIDE_SERVER;
    struct flow *from = &connection->flows[is_server ? TO_CLIENT : TO_SERVER];
    struct flow *to = &connection->flows[is_server ? TO_SERVER : TO_CLIENT];
    if (!connection->connected) {
        connection_finish_connect(connection);
    } else {
        if (events & EV_WRITE) {
            to->full = false;
            flow_flush(to);
        }
        if ((events & EV_READ) && !connection->doom && flow_wants_to_read(from)) flow_read(from);
    }
    connection_review(connection);
}

static void on_event(struct ev_loop *loop, ev_io *io, int events) {
    struct connection *connection = io->data;
    int side = io == &connection->io[SIDE_SERVER] ? SIDE_SERVER : SIDE_CLIENT;
    if (is_stepped(connection->link)) {
        connection->events_wait[side] = events;
        ev_io_stop(loop, io);
    } else {
        connection_work(connection, side, events);
    }
}

/* The server's side first: what it closed has no use for more. False: nothing had come. */
static bool connection_step(struct connection *connection) {
    for (int side = SIDES - 1; side >= 0; side--) {
        int events = connection->events_wait[side];
        connection->events_wait[side] = 0;
        if (!events) continue;
        connection_work(connection, side, events); /* the connection may be gone */
        return true;
    }
    return false;
}

static void connection_open(struct link *link, int fd) {
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) abort();
    *connection = (struct connection){.link = link, .proxy = link->proxy, .next = link->connections};
    connection->place = &link->connections;
    if (connection->next) connection->next->place = &connection->next;
    link->connections = connection;
    link->connection_count++;
    link->proxy->connections++;
    connection->ledger.memory_bytes = &link->proxy->memory_bytes;
    ev_io_init(&connection->io[SIDE_CLIENT], on_event, fd, 0);
    ev_io_init(&connection->io[SIDE_SERVER], on_event, -1, 0);
    for (int side = 0; side < SIDES; side++) connection->io[side].data = connection;
    for (int each = 0; each < DIRECTIONS; each++) {
        struct rule_list *list = &link->rules[each];
        flow_open(&connection->flows[each], connection, (enum direction)each, link->plain);
        for (size_t place = 0; place < list->count; place++)
            if (list->rules[place]->is_blanket) fate_enter_black_hole(&connection->flows[each], list->rules[place]);
    }
    connection_connect(connection);
}

/* --- links --- */

static void link_accept(struct link *link) {
    struct ev_loop *loop = link->proxy->loop;
    ev_io *io = &link->io;
    for (int each = 0; each < ACCEPT_AT_ONCE; each++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            connection_open(link, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) {
            ev_io_stop(loop, io);
            link->paused = true;
            retry_later(link->proxy);
        }
        return;
    }
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events) {
    struct link *link = io->data;
    (void)events;
    link->accept_waits = is_stepped(link);
    if (link->accept_waits) ev_io_stop(loop, io);
    else link_accept(link);
}

size_t link_step_all(struct proxy *proxy) {
    size_t count = 0;
    for (struct link *link = proxy->links; link; link = link->next) {
        if (link->accept_waits) {
            link->accept_waits = false;
            ev_io_start(proxy->loop, &link->io);
            link_accept(link);
            count++;
        }
        for (struct connection *next, *each = link->connections; each; each = next) {
            next = each->next;
            count += connection_step(each);
        }
    }
    return count;
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events) {
    struct proxy *proxy = timer->data;
    (void)events;
    for (struct link *link = proxy->links; link; link = link->next) {
        if (link->paused) ev_io_start(loop, &link->io);
        link->paused = false;
        for (struct connection *next, *each = link->connections; each; each = next) {
            next = each->next;
            if (!each->connected && each->io[SIDE_SERVER].fd < 0) connection_connect(each);
        }
    }
}

struct link *link_add(struct proxy *proxy, const char *name, const struct address *listen, const struct address *target,
                      bool plain, bool stepped, struct address_error *error) {
    struct link **place = &proxy->links, *link = calloc(1, sizeof *link);
    if (!link) abort();
    while (*place) place = &(*place)->next;
    *link = (struct link){.proxy = proxy, .listen = *listen, .target = *target, .plain = plain, .stepped = stepped};
    int fd = address_listen(&link->listen, error);
    if (fd < 0) {
        free(link);
        return NULL;
    }
    link->name = strdup(name);
    if (!link->name) abort();
    link->text = proxy_text(proxy, name);
    *place = link;
    link_refresh(link);
    if (!proxy->retry.data) ev_timer_init(&proxy->retry, on_retry, RETRY_S, 0);
    proxy->retry.data = proxy;
    ev_io_init(&link->io, on_accept, fd, EV_READ);
    link->io.data = link;
    ev_io_start(proxy->loop, &link->io);
    return link;
}

size_t link_close_connections(struct link *link) {
    size_t count = 0;
    for (; link->connections; count++) {
        link->connections->doom = DOOM_CLOSE;
        connection_review(link->connections);
    }
    return count;
}

void link_remove(struct link *link) {
    struct link **place = &link->proxy->links;
    link_close_connections(link);
    close_socket(link->proxy->loop, &link->io, false);
    address_remove(&link->listen);
    while (*place != link) place = &(*place)->next;
    *place = link->next;
    for (int each = 0; each < DIRECTIONS; each++) free(link->rules[each].rules);
    free(link->awaiting.rules);
    free(link->name);
    free(link);
}

static void list_add(struct rule_list *list, struct rule *rule) {
    list->rules = realloc(list->rules, (list->count + 1) * sizeof(struct rule *));
    if (!list->rules) abort();
    list->rules[list->count++] = rule;
}

void link_refresh(struct link *link) {
    link->rules[TO_SERVER].count = link->rules[TO_CLIENT].count = link->awaiting.count = 0;
    for (struct rule *rule = link->proxy->rules; rule; rule = rule->next) {
        for (int each = 0; each < DIRECTIONS; each++)
            if (rule_concerns(rule, link->name, (enum direction)each)) list_add(&link->rules[each], rule);
        bool waits = rule->has_match && !rule->push;
        if (waits && rule_concerns(rule, link->name, TO_CLIENT)) list_add(&link->awaiting, rule);
    }
}
