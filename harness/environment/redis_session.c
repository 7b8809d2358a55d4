#include "harness/environment/redis_session.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "harness/environment/env.h"

void redis_session_close(struct redis_session *session) {
    if (!session->context) return;
    live_task_count_unawaited(session->task);
    redisFree(session->context);
    session->context = NULL;
}

/* Many clients may connect at once: a server whose queue of connections is full takes the next one a moment later. A
 * blocking connect would wait for that, and with it all the tasks of this process. */
static redisContext *connect_among_many(struct live_task *task, const char *address) {
    int64_t give_up_ns = live_task_deadline_ns(task, task->reply_limit_ns);
    for (;;) {
        redisContext *context = redisConnectUnixNonBlock(address);
        bool is_full = context && context->err == REDIS_ERR_IO && errno == EAGAIN;
        if (!is_full || live_task_mono_ns(task) >= give_up_ns) return context;
        redisFree(context);
        live_task_sleep_until(task, live_task_deadline_ns(task, ENV_NS_PER_MS));
    }
}

bool redis_session_connect(struct redis_session *session) {
    struct live_task *task = session->task;
    live_task_count_sent(task);
    if (!session->context)
        session->context = task->task.carrier ? connect_among_many(task, session->address)
                                              : redisConnectUnixNonBlock(session->address);
    if (session->context && session->context->err) {
        redisFree(session->context);
        session->context = NULL;
    }
    return session->context != NULL;
}

/* Without hiredis, whose write to a connection that the server has closed would end this process by SIGPIPE. The
 * outcome is not looked at: what the server sent before it closed can still be read, and else the end can. */
void redis_session_send(const struct redis_session *session, const char *bytes, size_t length) {
    int fd = session->context->fd;
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes += sent;
            length -= (size_t)sent;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return;
        }
    }
}

redisReply *redis_session_receive(struct redis_session *session, int64_t look_ns, int64_t give_up_ns, bool may_block) {
    void *reply = NULL;
    while (redisGetReplyFromReader(session->context, &reply) == REDIS_OK) {
        if (reply) return reply;
        if (!live_task_await_readable(session->task, session->context->fd, look_ns, may_block)) {
            if (look_ns == give_up_ns) return NULL;
            look_ns = give_up_ns;
        } else if (redisBufferRead(session->context) == REDIS_ERR) {
            return NULL;
        }
    }
    return NULL;
}

/* What a client library sees of an idle connection, too: the other side has closed it. */
static bool is_closed(const redisContext *context) {
    char byte;
    ssize_t got = recv(context->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* A connection that was closed while it was idle is made anew. One on which a reply is still outstanding is given up:
 * the next command must not read this one's reply. */
redisReply *redis_session_ask(struct redis_session *session, const char *command, size_t length, int64_t limit_ns,
                              bool may_block) {
    struct live_task *task = session->task;
    if (session->context && is_closed(session->context)) redis_session_close(session);
    bool connected = redis_session_connect(session);
    bool server_waits = may_block && limit_ns != INT64_MAX;
    int64_t look_ns = live_task_deadline_ns(task, server_waits ? limit_ns + ENV_NS_PER_MS : limit_ns);
    int64_t give_up_ns = server_waits ? look_ns + task->reply_limit_ns : look_ns;
    if (!connected) return NULL;
    if (may_block) live_task_count_unawaited(task);
    redis_session_send(session, command, length);
    redisReply *reply = redis_session_receive(session, look_ns, give_up_ns, may_block);
    if (!reply) redis_session_close(session);
    return reply;
}
