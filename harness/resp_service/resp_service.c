#include "harness/resp_service/resp_service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_LIMIT = 1 << 20 };

static void caller_close(struct resp_caller *caller) {
    ev_io_stop(caller->service->loop, &caller->io);
    close(caller->io.fd);
    redisReaderFree(caller->requests);
    reply_free(&caller->reply);
    *caller->place = caller->next;
    if (caller->next) caller->next->place = caller->place;
    free(caller);
}

static void caller_end(struct resp_caller *caller) {
    ev_io_stop(caller->service->loop, &caller->io);
    caller->closing = true;
    if (!caller->service->end || caller->service->end(caller)) caller_close(caller);
}

static void caller_flush(struct resp_caller *caller) {
    struct ev_loop *loop = caller->service->loop;
    struct reply_text *reply = &caller->reply;
    bool gone = false;
    size_t sent = 0;
    while (sent < reply->length && !gone) {
        ssize_t some = send(caller->io.fd, reply->bytes + sent, reply->length - sent, MSG_NOSIGNAL);
        if (some >= 0) sent += (size_t)some;
        else if (errno == EAGAIN) break;
        else gone = errno != EINTR;
    }
    reply->length -= sent;
    if (sent && reply->length) memmove(reply->bytes, reply->bytes + sent, reply->length);
    if (gone || (caller->closing && reply->length == 0)) {
        caller_end(caller);
        return;
    }
    int events = reply->length ? EV_WRITE : caller->waits ? 0 : EV_READ;
    if ((caller->io.events & (EV_READ | EV_WRITE)) == events) return;
    ev_io_stop(loop, &caller->io);
    ev_io_set(&caller->io, caller->io.fd, events);
    if (events) ev_io_start(loop, &caller->io);
}

void resp_caller_go_on(struct resp_caller *caller) {
    void *request;
    while (!caller->closing && !caller->waits && redisReaderGetReply(caller->requests, &request) == REDIS_OK &&
           request) {
        caller->pending = 0;
        caller->service->serve(caller, request);
        freeReplyObject(request);
    }
    if (caller->requests->err || caller->pending > REQUEST_LIMIT) {
        reply_error(&caller->reply, "not a RESP request, or longer than 1 MiB");
        caller->closing = true;
    }
    caller_flush(caller);
}

static void on_caller(struct ev_loop *loop, ev_io *io, int events) {
    struct resp_caller *caller = (struct resp_caller *)io;
    char bytes[16384];
    (void)loop;
    if (!(events & EV_READ)) {
        caller_flush(caller);
        return;
    }
    ssize_t got = recv(io->fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0 || redisReaderFeed(caller->requests, bytes, (size_t)got) != REDIS_OK) {
        caller_end(caller);
        return;
    }
    caller->pending += (size_t)got;
    resp_caller_go_on(caller);
}

static void resp_service_on_accept(struct ev_loop *loop, ev_io *io, int events) {
    struct resp_service *service = io->data;
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    (void)events;
    if (fd < 0) return;
    struct resp_caller *caller = calloc(1, service->caller_size);
    if (!caller) abort();
    *caller = (struct resp_caller){.service = service, .next = service->callers, .place = &service->callers};
    if (caller->next) caller->next->place = &caller->next;
    service->callers = caller;
    caller->requests = redisReaderCreate();
    if (!caller->requests) abort();
    ev_io_init(&caller->io, on_caller, fd, EV_READ);
    ev_io_start(loop, &caller->io);
}

bool resp_service_open(struct resp_service *service, const char *address, struct address_error *error) {
    if (!address_parse(address, strlen(address), &service->address, error)) return false;
    int fd = address_listen(&service->address, error);
    if (fd < 0) return false;
    ev_io_init(&service->accepting, resp_service_on_accept, fd, EV_READ);
    service->accepting.data = service;
    ev_io_start(service->loop, &service->accepting);
    return true;
}

void resp_service_close(struct resp_service *service) {
    while (service->callers) caller_close(service->callers);
    ev_io_stop(service->loop, &service->accepting);
    close(service->accepting.fd);
    address_remove(&service->address);
}
