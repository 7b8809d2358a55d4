#include "faults/proxy/control.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faults/proxy/commands.h"
#include "faults/proxy/link.h"

enum { REQUEST_LIMIT = 1 << 20, ARGUMENTS_MAX = 64 };

/* A caller that sent SETTLE waits, and so do its requests behind it. The idle watcher has the lowest priority: it runs
 * when polling all sockets has found nothing to read, to write or to accept. */
struct control {
    struct proxy *proxy;
    struct address address;
    ev_io accepting;
    ev_idle idle;
    struct caller *callers;
};

struct caller {
    ev_io io; /* first */
    struct caller *next, **place;
    struct control *control;
    redisReader *requests;
    struct control_reply reply;
    size_t pending; /* bytes read since the last whole request */
    bool settling, closing;
    bool wants_targets; /* settling: SETTLE TARGETS */
};

static void caller_close(struct caller *caller) {
    ev_io_stop(caller->control->proxy->loop, &caller->io);
    close(caller->io.fd);
    redisReaderFree(caller->requests);
    reply_free(&caller->reply);
    *caller->place = caller->next;
    if (caller->next) caller->next->place = caller->place;
    free(caller);
}

static void caller_flush(struct caller *caller) {
    struct ev_loop *loop = caller->control->proxy->loop;
    bool gone = false;
    size_t sent = 0;
    while (sent < caller->reply.length && !gone) {
        ssize_t some = send(caller->io.fd, caller->reply.bytes + sent, caller->reply.length - sent, MSG_NOSIGNAL);
        if (some >= 0) sent += (size_t)some;
        else if (errno == EAGAIN) break;
        else gone = errno != EINTR;
    }
    caller->reply.length -= sent;
    if (sent && caller->reply.length) memmove(caller->reply.bytes, caller->reply.bytes + sent, caller->reply.length);
    if (gone || (caller->closing && caller->reply.length == 0)) {
        caller_close(caller);
        return;
    }
    int events = caller->reply.length ? EV_WRITE : EV_READ; /* a caller that does not read its replies is not read */
    if ((caller->io.events & (EV_READ | EV_WRITE)) == events) return;
    ev_io_stop(loop, &caller->io);
    ev_io_set(&caller->io, caller->io.fd, events);
    ev_io_start(loop, &caller->io);
}

static bool is_request(const redisReply *request) {
    if (request->type != REDIS_REPLY_ARRAY || request->elements == 0 || request->elements > ARGUMENTS_MAX) return false;
    for (size_t each = 0; each < request->elements; each++)
        if (request->element[each]->type != REDIS_REPLY_STRING) return false;
    return true;
}

static void caller_serve(struct caller *caller, const redisReply *request) {
    struct span arguments[ARGUMENTS_MAX];
    struct proxy *proxy = caller->control->proxy;
    if (!is_request(request)) {
        reply_error(&caller->reply, "a request is an array of 1 to %d strings", ARGUMENTS_MAX);
        return;
    }
    for (size_t each = 0; each < request->elements; each++)
        arguments[each] = (struct span){request->element[each]->str, request->element[each]->len};
    enum command_result result = command_run(proxy, arguments, request->elements, &caller->reply);
    switch (result) {
    case COMMAND_SETTLE:
    case COMMAND_TARGETS:
        caller->settling = true;
        caller->wants_targets = result == COMMAND_TARGETS;
        ev_idle_start(proxy->loop, &caller->control->idle);
        break;
    case COMMAND_QUIT: caller->closing = true; break;
    case COMMAND_SHUTDOWN:
        caller->closing = true;
        ev_break(proxy->loop, EVBREAK_ALL);
        break;
    default: break;
    }
}

static void caller_work(struct caller *caller) {
    void *request;
    while (!caller->closing && !caller->settling && redisReaderGetReply(caller->requests, &request) == REDIS_OK &&
           request) {
        caller->pending = 0;
        caller_serve(caller, request);
        freeReplyObject(request);
    }
    if (caller->requests->err || caller->pending > REQUEST_LIMIT) {
        reply_error(&caller->reply, "not a RESP request, or longer than 1 MiB");
        caller->closing = true;
    }
}

static void on_caller(struct ev_loop *loop, ev_io *io, int events) {
    struct caller *caller = (struct caller *)io;
    char bytes[16384];
    (void)loop;
    if (events & EV_READ) {
        ssize_t got = recv(io->fd, bytes, sizeof bytes, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0 || redisReaderFeed(caller->requests, bytes, (size_t)got) != REDIS_OK) {
            caller_close(caller);
            return;
        }
        caller->pending += (size_t)got;
        caller_work(caller);
    }
    caller_flush(caller);
}

static void reply_settled(struct caller *caller) {
    int64_t next_ns = timer_heap_next_ns(&caller->control->proxy->timers);
    if (caller->wants_targets)
        reply_write(&caller->reply, "*%zu\r\n", 1 + 2 * link_count_active_targets(caller->control->proxy));
    reply_write(&caller->reply, ":%lld\r\n", next_ns == TIMER_HEAP_NEVER ? -1LL : (long long)next_ns);
    for (struct proxy_link *link = caller->control->proxy->links; caller->wants_targets && link; link = link->next) {
        if (link->activity == TARGET_IDLE) continue;
        reply_bulk(&caller->reply, link->target.text);
        reply_write(&caller->reply, ":%d\r\n", link->activity == TARGET_HAS_CONNECTION);
        link->activity = TARGET_IDLE;
    }
}

/* Nothing is left to read or write. What has become due is delivered first, and then the sockets are polled again. */
static void on_idle(struct ev_loop *loop, ev_idle *idle, int events) {
    struct control *control = idle->data;
    struct proxy *proxy = control->proxy;
    (void)events;
    if (link_step_all(proxy) || timer_heap_deliver(&proxy->timers)) return;
    ev_idle_stop(loop, idle);
    for (struct caller *next, *each = control->callers; each; each = next) {
        next = each->next;
        if (!each->settling) continue;
        each->settling = false;
        reply_settled(each);
        caller_work(each);
        caller_flush(each);
    }
}

static void control_on_accept(struct ev_loop *loop, ev_io *io, int events) {
    struct control *control = io->data;
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    (void)events;
    if (fd < 0) return;
    struct caller *caller = calloc(1, sizeof *caller);
    if (!caller) abort();
    *caller = (struct caller){.control = control, .next = control->callers, .place = &control->callers};
    if (caller->next) caller->next->place = &caller->next;
    control->callers = caller;
    caller->requests = redisReaderCreate();
    if (!caller->requests) abort();
    ev_io_init(&caller->io, on_caller, fd, EV_READ);
    ev_io_start(loop, &caller->io);
}

struct control *control_open(struct proxy *proxy, const char *path, struct address_error *error) {
    struct control *control = calloc(1, sizeof *control);
    if (!control) abort();
    control->proxy = proxy;
    int fd = -1;
    if (address_parse((struct span){path, strlen(path)}, &control->address, error))
        fd = address_listen(&control->address, error);
    if (fd < 0) {
        free(control);
        return NULL;
    }
    ev_io_init(&control->accepting, control_on_accept, fd, EV_READ);
    control->accepting.data = control;
    ev_io_start(proxy->loop, &control->accepting);
    ev_idle_init(&control->idle, on_idle);
    ev_set_priority(&control->idle, EV_MINPRI);
    control->idle.data = control;
    return control;
}

void control_close(struct control *control) {
    while (control->callers) caller_close(control->callers);
    ev_idle_stop(control->proxy->loop, &control->idle);
    ev_io_stop(control->proxy->loop, &control->accepting);
    close(control->accepting.fd);
    address_remove(&control->address);
    free(control);
}
