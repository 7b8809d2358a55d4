#include "faults/proxy/link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faults/proxy/disposition.h"
#include "faults/proxy/message_reader.h"

enum { ACCEPT_AT_ONCE = 256 };
static const double RETRY_S = 0.002;

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

/* The server has closed, and has seen the end of its client or is gone: closing the connection gives it nothing to
 * read. */
static bool both_ended(const struct proxy_connection *connection) {
    const struct flow *to_server = &connection->flows[TO_SERVER];
    return connection->flows[TO_CLIENT].source_ended && (to_server->end_written || to_server->receiver_gone);
}

static void connection_close(struct proxy_connection *connection) {
    struct proxy *proxy = connection->proxy;
    timer_heap_remove(&proxy->timers, &connection->server_wait);
    for (int each = 0; each < DIRECTIONS; each++) flow_close(&connection->flows[each]);
    if (connection->io[SIDE_SERVER].fd >= 0 && !both_ended(connection))
        proxy_link_add_activity(connection->link, TARGET_HAS_INPUT);
    for (int side = 0; side < SIDES; side++)
        close_socket(proxy->loop, &connection->io[side], connection->closing == CLOSING_RESET);
    reply_matcher_close(&connection->matcher);
    *connection->place = connection->next;
    if (connection->next) connection->next->place = connection->place;
    connection->link->connection_count--;
    proxy->connections--;
    proxy->opaque -= connection->opaque_counted;
    free(connection);
}

/* The direction to the server is over when its end was written or the server is gone. The direction to the client is
 * also over when the client is gone and the server has sent everything: closed before that, the server could not finish
 * what it was asked. */
static bool is_over(const struct proxy_connection *connection) {
    const struct flow *to_server = &connection->flows[TO_SERVER], *to_client = &connection->flows[TO_CLIENT];
    if (!to_server->end_written && !to_server->receiver_gone) return false;
    return to_client->end_written || (to_client->receiver_gone && to_client->source_ended);
}

static void watch(struct proxy_connection *connection, int side, bool read, bool write) {
    ev_io *io = &connection->io[side];
    int events = (read ? EV_READ : 0) | (write ? EV_WRITE : 0);
    int before = ev_is_active(io) ? io->events & (EV_READ | EV_WRITE) : 0;
    if (events == before || io->fd < 0) return;
    ev_io_stop(connection->proxy->loop, io);
    if (events == 0) return;
    ev_io_set(io, io->fd, events);
    ev_io_start(connection->proxy->loop, io);
}

void connection_review(struct proxy_connection *connection) {
    if (connection->closing || is_over(connection)) {
        connection_close(connection);
        return;
    }
    struct flow *to_server = &connection->flows[TO_SERVER], *to_client = &connection->flows[TO_CLIENT];
    bool read = flow_wants_to_read(to_client);
    if (read && connection->server_blocked) proxy_link_add_activity(connection->link, TARGET_HAS_INPUT);
    connection->server_blocked = !read;
    watch(connection, SIDE_CLIENT, flow_wants_to_read(to_server), to_client->receiver_full);
    watch(connection, SIDE_SERVER, read, to_server->receiver_full || !connection->connected);
}

static void connection_begin(struct proxy_connection *connection) {
    connection->connected = true;
    proxy_link_add_activity(connection->link, TARGET_HAS_CONNECTION);
    for (int side = 0; side < SIDES; side++) address_set_nodelay(connection->io[side].fd);
    for (int each = 0; each < DIRECTIONS; each++) flow_flush(&connection->flows[each]);
}

/* Whether a connection that its target refuses waits for the target. Somebody who has gone waits no longer, and a
 * target that came back would take the connection for a new one. */
static bool waits_for_target(const struct proxy_connection *connection) {
    struct pollfd client = {.fd = connection->io[SIDE_CLIENT].fd, .events = POLLRDHUP};
    return connection->link->option == LINK_PATIENT && poll(&client, 1, 0) == 0;
}

static void connection_connect(struct proxy_connection *connection) {
    int fd;
    enum address_state state = address_connect(&connection->link->target, &fd);
    ev_io_set(&connection->io[SIDE_SERVER], fd, 0);
    if (fd >= 0) proxy_link_add_activity(connection->link, TARGET_HAS_CONNECTION);
    if (state == ADDRESS_REFUSED) state = waits_for_target(connection) ? ADDRESS_BUSY : ADDRESS_FAILED;
    if (state == ADDRESS_FAILED) connection->closing = CLOSING_CLOSE;
    if (state == ADDRESS_BUSY) retry_later(connection->proxy);
    if (state == ADDRESS_CONNECTED) connection_begin(connection);
    connection_review(connection);
}

static void connection_finish_connect(struct proxy_connection *connection) {
    int reason = 0;
    socklen_t length = sizeof reason;
    getsockopt(connection->io[SIDE_SERVER].fd, SOL_SOCKET, SO_ERROR, &reason, &length);
    if (reason == ECONNREFUSED && waits_for_target(connection)) {
        close_socket(connection->proxy->loop, &connection->io[SIDE_SERVER], false);
        ev_io_set(&connection->io[SIDE_SERVER], -1, 0);
        retry_later(connection->proxy);
    } else if (reason) {
        connection->closing = CLOSING_CLOSE;
    } else {
        connection_begin(connection);
    }
}

static bool is_stepped(const struct proxy_link *link) {
    const struct shared_page *page = link->proxy->actor.page;
    return link->option >= LINK_PLAIN_STEPPED && page->time == HISTORY_TIME_VIRTUAL && atomic_load(&page->unreliable);
}

static void on_due(struct timer *timer) {
    struct flow *flow = (void *)((char *)timer - offsetof(struct flow, timer));
    flow_flush(flow);
    connection_review(flow->connection);
}

/* The scheduler then sees to it that the server looks at its clock. */
static void on_server_wait(struct timer *timer) {
    const struct proxy_connection *waits = (void *)((char *)timer - offsetof(struct proxy_connection, server_wait));
    proxy_link_add_activity(waits->link, TARGET_HAS_INPUT);
}

static void connection_work(struct proxy_connection *connection, int side, int events) {
    bool is_server = side == SIDE_SERVER;
    struct flow *from = &connection->flows[is_server ? TO_CLIENT : TO_SERVER];
    struct flow *to = &connection->flows[is_server ? TO_SERVER : TO_CLIENT];
    if (!connection->connected) {
        connection_finish_connect(connection);
    } else {
        if (events & EV_WRITE) {
            to->receiver_full = false;
            flow_flush(to);
        }
        if ((events & EV_READ) && !connection->closing && flow_wants_to_read(from)) message_reader_read(from);
    }
    connection_review(connection);
}

static void on_event(struct ev_loop *loop, ev_io *io, int events) {
    struct proxy_connection *connection = io->data;
    int side = io == &connection->io[SIDE_SERVER] ? SIDE_SERVER : SIDE_CLIENT;
    if (is_stepped(connection->link)) {
        connection->pending_events[side] = events;
        ev_io_stop(loop, io);
    } else {
        connection_work(connection, side, events);
    }
}

/* Deals with one event, the server's side first: a server that has closed needs no more input. False: there was none.
 */
static bool connection_step(struct proxy_connection *connection) {
    for (int side = SIDES - 1; side >= 0; side--) {
        int events = connection->pending_events[side];
        connection->pending_events[side] = 0;
        if (!events) continue;
        connection_work(connection, side, events); /* the connection may be gone */
        return true;
    }
    return false;
}

static void connection_open(struct proxy_link *link, int fd) {
    struct proxy_connection *connection = calloc(1, sizeof *connection);
    if (!connection) abort();
    *connection = (struct proxy_connection){.link = link, .proxy = link->proxy, .next = link->connections};
    connection->place = &link->connections;
    if (connection->next) connection->next->place = &connection->next;
    link->connections = connection;
    link->connection_count++;
    link->proxy->connections++;
    connection->matcher.memory_bytes = &link->proxy->memory_bytes;
    connection->server_wait.deliver = on_server_wait;
    ev_io_init(&connection->io[SIDE_CLIENT], on_event, fd, 0);
    ev_io_init(&connection->io[SIDE_SERVER], on_event, -1, 0);
    for (int side = 0; side < SIDES; side++) connection->io[side].data = connection;
    for (int each = 0; each < DIRECTIONS; each++) {
        struct rule_list *list = &link->rules[each];
        bool opaque = link->option >= LINK_PLAIN && link->option <= LINK_PLAIN_STEPPED;
        flow_open(&connection->flows[each], connection, (enum direction)each, opaque, on_due);
        for (size_t place = 0; place < list->count; place++)
            if (list->rules[place]->is_blanket)
                disposition_enter_black_hole(&connection->flows[each], list->rules[place]);
    }
    connection_connect(connection);
}

/* --- links --- */

static void link_accept(struct proxy_link *link) {
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

static void link_on_accept(struct ev_loop *loop, ev_io *io, int events) {
    struct proxy_link *link = io->data;
    (void)events;
    link->accept_pending = is_stepped(link);
    if (link->accept_pending) ev_io_stop(loop, io);
    else link_accept(link);
}

size_t link_step_all(struct proxy *proxy) {
    size_t count = 0;
    for (struct proxy_link *link = proxy->links; link; link = link->next) {
        if (link->accept_pending) {
            link->accept_pending = false;
            ev_io_start(proxy->loop, &link->io);
            link_accept(link);
            count++;
        }
        for (struct proxy_connection *next, *each = link->connections; each; each = next) {
            next = each->next;
            count += connection_step(each);
        }
    }
    return count;
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events) {
    struct proxy *proxy = timer->data;
    (void)events;
    for (struct proxy_link *link = proxy->links; link; link = link->next) {
        if (link->paused) ev_io_start(loop, &link->io);
        link->paused = false;
        for (struct proxy_connection *next, *each = link->connections; each; each = next) {
            next = each->next;
            if (!each->connected && each->io[SIDE_SERVER].fd < 0) connection_connect(each);
        }
    }
}

struct proxy_link *link_add(struct proxy *proxy, const char *name, const struct address *listen,
                            const struct address *target, enum link_option option, struct address_error *error) {
    struct proxy_link **place = &proxy->links, *link = calloc(1, sizeof *link);
    if (!link) abort();
    while (*place) place = &(*place)->next;
    *link = (struct proxy_link){.proxy = proxy, .listen = *listen, .target = *target, .option = option};
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
    ev_io_init(&link->io, link_on_accept, fd, EV_READ);
    link->io.data = link;
    ev_io_start(proxy->loop, &link->io);
    return link;
}

size_t link_close_connections(struct proxy_link *link) {
    size_t count = 0;
    for (; link->connections; count++) {
        link->connections->closing = CLOSING_CLOSE;
        connection_review(link->connections);
    }
    return count;
}

void link_remove(struct proxy_link *link) {
    struct proxy_link **place = &link->proxy->links;
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

void link_refresh(struct proxy_link *link) {
    link->rules[TO_SERVER].count = link->rules[TO_CLIENT].count = link->awaiting.count = 0;
    for (struct rule *rule = link->proxy->rules; rule; rule = rule->next) {
        for (int each = 0; each < DIRECTIONS; each++)
            if (rule_concerns(rule, link->name, (enum direction)each)) list_add(&link->rules[each], rule);
        bool waits = rule->has_match && !rule->push;
        if (waits && rule_concerns(rule, link->name, TO_CLIENT)) list_add(&link->awaiting, rule);
    }
}
