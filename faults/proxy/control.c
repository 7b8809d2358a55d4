#include "faults/proxy/control.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faults/proxy/address.h"

#include "faults/proxy/link.h"

enum { REQUEST_LIMIT = 1 << 20, WORDS_MAX = 64 };

/* Somebody who asked for SETTLE waits, and so do the requests behind it. The idle watcher has the lowest priority: it
 * runs when a look at all sockets has found nothing to read, to write or to accept. */
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
    struct answer_text out;
    size_t pending; /* bytes read since the last whole request */
    bool settling, closing;
    bool asks_targets; /* settling: what it wants to hear */
};

/* --- answers --- */

static void say_list(struct answer_text *out, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
static void say_list(struct answer_text *out, const char *format, va_list arguments) {
    char *text = NULL;
    int length = vasprintf(&text, format, arguments);
    if (length < 0) abort();
    if (out->length + (size_t)length > out->room) {
        out->room = 2 * out->room + (size_t)length;
        out->bytes = realloc(out->bytes, out->room);
        if (!out->bytes) abort();
    }
    memcpy(out->bytes + out->length, text, (size_t)length);
    out->length += (size_t)length;
    free(text);
}

void say(struct answer_text *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say_list(out, format, arguments);
    va_end(arguments);
}

/* What was typed may stand in the sentence: it must stay one line. */
void say_error(struct answer_text *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(out, "-ERR ");
    size_t from = out->length;
    say_list(out, format, arguments);
    va_end(arguments);
    for (size_t at = from; at < out->length; at++)
        if (out->bytes[at] == '\r' || out->bytes[at] == '\n' || out->bytes[at] == '\0') out->bytes[at] = '?';
    say(out, "\r\n");
}

void say_text(struct answer_text *out, const char *text) {
    say(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

/* --- callers --- */

static void caller_close(struct caller *caller) {
    ev_io_stop(caller->control->proxy->loop, &caller->io);
    close(caller->io.fd);
    redisReaderFree(caller->requests);
    free(caller->out.bytes);
    *caller->place = caller->next;
    if (caller->next) caller->next->place = caller->place;
    free(caller);
}

static void caller_flush(struct caller *caller) {
    struct ev_loop *loop = caller->control->proxy->loop;
    bool gone = false;
    size_t sent = 0;
    while (sent < caller->out.length && !gone) {
        ssize_t some = send(caller->io.fd, caller->out.bytes + sent, caller->out.length - sent, MSG_NOSIGNAL);
        if (some >= 0) sent += (size_t)some;
        else if (errno == EAGAIN) break;
        else gone = errno != EINTR;
    }
    caller->out.length -= sent;
    if (sent && caller->out.length) memmove(caller->out.bytes, caller->out.bytes + sent, caller->out.length);
    if (gone || (caller->closing && caller->out.length == 0)) {
        caller_close(caller);
        return;
    }
    int events = caller->out.length ? EV_WRITE : EV_READ; /* who does not read its answers is not asked for more */
    if ((caller->io.events & (EV_READ | EV_WRITE)) == events) return;
    ev_io_stop(loop, &caller->io);
    ev_io_set(&caller->io, caller->io.fd, events);
    ev_io_start(loop, &caller->io);
}

static bool is_request(const redisReply *request) {
    if (request->type != REDIS_REPLY_ARRAY || request->elements == 0 || request->elements > WORDS_MAX) return false;
    for (size_t each = 0; each < request->elements; each++)
        if (request->element[each]->type != REDIS_REPLY_STRING) return false;
    return true;
}

static void caller_serve(struct caller *caller, const redisReply *request) {
    struct span words[WORDS_MAX];
    struct proxy *proxy = caller->control->proxy;
    if (!is_request(request)) {
        say_error(&caller->out, "a request is an array of 1 to %d strings", WORDS_MAX);
        return;
    }
    for (size_t each = 0; each < request->elements; each++)
        words[each] = (struct span){request->element[each]->str, request->element[each]->len};
    enum verdict verdict = command_serve(proxy, words, request->elements, &caller->out);
    switch (verdict) {
    case COMMAND_SETTLE:
    case COMMAND_TARGETS:
        caller->settling = true;
        caller->asks_targets = verdict == COMMAND_TARGETS;
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
        say_error(&caller->out, "not a RESP request, or longer than 1 MiB");
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

static void say_settled(struct caller *caller) {
    int64_t next_ns = agenda_next_ns(&caller->control->proxy->agenda);
    if (caller->asks_targets) say(&caller->out, "*%zu\r\n", 1 + 2 * link_count_targets(caller->control->proxy));
    say(&caller->out, ":%lld\r\n", next_ns == AGENDA_NEVER ? -1LL : (long long)next_ns);
    for (struct link *link = caller->control->proxy->links; caller->asks_targets && link; link = link->next) {
        if (link->dealing == DEALING_NONE) continue;
        say_text(&caller->out, link->target.text);
        say(&caller->out, ":%d\r\n", link->dealing == DEALING_JOINED);
        link->dealing = DEALING_NONE;
    }
}

/* Nothing is left to read or write. What has become due goes out first, and then the sockets are looked at again. */
static void on_idle(struct ev_loop *loop, ev_idle *idle, int events) {
    struct control *control = idle->data;
    struct proxy *proxy = control->proxy;
    (void)events;
    if (link_step_all(proxy) || agenda_deliver(&proxy->agenda)) return;
    ev_idle_stop(loop, idle);
    for (struct caller *next, *each = control->callers; each; each = next) {
        next = each->next;
        if (!each->settling) continue;
        each->settling = false;
        say_settled(each);
        caller_work(each);
        caller_flush(each);
    }
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events) {
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

struct control *control_open(struct proxy *proxy, const char *path, struct rule_error *error) {
    struct control *control = calloc(1, sizeof *control);
    struct address_error reason;
    if (!control) abort();
    control->proxy = proxy;
    int fd = -1;
    if (address_parse((struct span){path, strlen(path)}, &control->address, &reason))
        fd = address_listen(&control->address, &reason);
    if (fd < 0) {
        snprintf(error->text, sizeof error->text, "%s", reason.text);
        free(control);
        return NULL;
    }
    ev_io_init(&control->accepting, on_accept, fd, EV_READ);
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
