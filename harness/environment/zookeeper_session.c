#include "harness/environment/zookeeper_session.h"

#include <stdlib.h>

#if LOCKSTORM_ZOOKEEPER

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <zookeeper.h>

#include "harness/scheduler/grown.h"
#include "harness/scheduler/wakeup.h"

enum { NS_PER_S = 1000000000, NS_PER_US = 1000 };

struct zookeeper_session {
    pthread_mutex_t mutex; /* of everything below, and of the library, which has none */
    zhandle_t *handle;
    enum env_session_state state;
    void (*changed)(struct env *, enum env_session_state, void *);
    void *argument;
    struct env *tender; /* of the task that tends the session; NULL: none does */
    bool dismissed;
    bool has_news;
    bool is_idle; /* the tending task waited in vain: what it sends next is a heartbeat */
    int news_fd;  /* eventfd, for the worker: an answer or an event has arrived */
    int tend_fd;  /* epoll, for the tending task: the socket and wake_fd */
    int wake_fd;  /* eventfd: the session was dismissed */
    uint64_t ask; /* the number of the last request */
    bool answered;
    struct env_reply reply; /* to it */
    struct env_reply *items;
    char **texts;
    size_t text_count, text_room;
};

/* What the library passes to a callback; the request may have been given up by then. */
struct zookeeper_request {
    struct zookeeper_session *session;
    uint64_t number;
};

/* --- the library's clock --- */

/* The library reads CLOCK_MONOTONIC_RAW, which nothing else in this program does. The linker (--wrap) sends that call
 * here, and while a task is inside the library it gets that task's clock. */
static _Thread_local const struct live_task *inside;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock != CLOCK_MONOTONIC_RAW || !inside) return __real_clock_gettime(clock, now);
    int64_t mono_ns = live_task_mono_ns(inside);
    *now = (struct timespec){.tv_sec = mono_ns / NS_PER_S, .tv_nsec = mono_ns % NS_PER_S};
    return 0;
}

static void zookeeper_enter(struct zookeeper_session *session, struct live_task *caller) {
    pthread_mutex_lock(&session->mutex);
    assert(!inside); /* a task is in the library once: its callbacks run within a call of ours */
    inside = caller;
}

static void zookeeper_leave(struct zookeeper_session *session) {
    inside = NULL;
    pthread_mutex_unlock(&session->mutex);
}

/* --- answers: the tending task gets them --- */

static void zookeeper_reply_drop(struct zookeeper_session *session) {
    for (size_t each = 0; each < session->text_count; each++) free(session->texts[each]);
    free(session->texts);
    free(session->items);
    session->texts = NULL;
    session->items = NULL;
    session->text_count = session->text_room = 0;
    session->reply = (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
}

static struct env_reply text_reply(struct zookeeper_session *session, enum env_reply_kind kind, const char *text) {
    char *copy = strdup(text);
    if (!copy) abort();
    session->texts = grown(session->texts, session->text_count + 1, &session->text_room, sizeof *session->texts);
    session->texts[session->text_count++] = copy;
    return (struct env_reply){.kind = kind, .text = copy, .length = strlen(copy)};
}

static struct env_reply items_reply(struct zookeeper_session *session, size_t count) {
    session->items = calloc(count + 1, sizeof *session->items);
    if (!session->items) abort();
    return (struct env_reply){.kind = ENV_REPLY_ARRAY, .items = session->items, .count = count};
}

/* Anything but success. When the connection or the session ended, or the client closes, it is unknown whether the
 * request was carried out. */
static struct env_reply failure_reply(struct zookeeper_session *session, int status) {
    switch (status) {
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZSESSIONEXPIRED:
    case ZSESSIONMOVED:
    case ZINVALIDSTATE:
    case ZCLOSING: return (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
    case ZNONODE: return (struct env_reply){.kind = ENV_REPLY_NIL};
    default: return text_reply(session, ENV_REPLY_ERROR, zerror(status));
    }
}

/* The session that waits for this answer, a success. NULL: the answer is a failure, which is the reply now, or the
 * request was given up. */
static struct zookeeper_session *awaiting(const void *data, int status) {
    struct zookeeper_request request = *(const struct zookeeper_request *)data;
    struct zookeeper_session *session = request.session;
    free((void *)(uintptr_t)data);
    /* An answer that comes after its limit must not become the reply to the request that followed. */
    if (request.number != session->ask || session->answered) return NULL;
    session->answered = true;
    wakeup_send(session->news_fd);
    if (status == ZOK) return session;
    session->reply = failure_reply(session, status);
    return NULL;
}

static void created(int status, const char *path, const struct Stat *stat, const void *data) {
    struct zookeeper_session *session = awaiting(data, status);
    if (!session) return;
    session->reply = items_reply(session, 2);
    session->items[0] = text_reply(session, ENV_REPLY_STRING, path);
    session->items[1] = (struct env_reply){.kind = ENV_REPLY_INTEGER, .integer = stat->czxid};
}

static void deleted(int status, const void *data) {
    struct zookeeper_session *session = awaiting(data, status);
    if (session) session->reply = text_reply(session, ENV_REPLY_STATUS, "OK");
}

static void looked(int status, const struct Stat *stat, const void *data) {
    struct zookeeper_session *session = awaiting(data, status);
    if (session) session->reply = (struct env_reply){.kind = ENV_REPLY_INTEGER, .integer = stat->czxid};
}

static void listed(int status, const struct String_vector *names, const void *data) {
    struct zookeeper_session *session = awaiting(data, status);
    if (!session) return;
    session->reply = items_reply(session, (size_t)names->count);
    for (int32_t each = 0; each < names->count; each++)
        session->items[each] = text_reply(session, ENV_REPLY_STRING, names->data[each]);
}

/* --- events --- */

static void announce_news(struct zookeeper_session *session) {
    session->has_news = true;
    wakeup_send(session->news_fd);
}

static void state_become(struct zookeeper_session *session, enum env_session_state state) {
    if (session->state == state || session->state == ENV_SESSION_LOST) return; /* a lost session never comes back */
    session->state = state;
    announce_news(session);
    if (session->tender) session->changed(session->tender, state, session->argument);
}

/* The library's other states are transitions to one of these. */
static void on_session_event(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)path;
    if (type != ZOO_SESSION_EVENT) return;
    if (state == ZOO_CONNECTED_STATE) state_become(context, ENV_SESSION_CONNECTED);
    else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE)
        state_become(context, ENV_SESSION_LOST);
    else state_become(context, ENV_SESSION_SUSPENDED);
}

static void on_watch(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)type, (void)state, (void)path;
    announce_news(context);
}

/* --- life --- */

struct zookeeper_session *zookeeper_session_open(const char *where, int64_t timeout_ms,
                                                 void (*changed)(struct env *, enum env_session_state, void *),
                                                 void *argument, struct live_task *caller) {
    struct zookeeper_session *session = calloc(1, sizeof *session);
    if (!session) abort();
    pthread_mutex_init(&session->mutex, NULL);
    session->changed = changed;
    session->argument = argument;
    session->state = ENV_SESSION_SUSPENDED;
    session->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    session->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    session->tend_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wake = {.events = EPOLLIN, .data.fd = session->wake_fd};
    if (epoll_ctl(session->tend_fd, EPOLL_CTL_ADD, session->wake_fd, &wake) != 0) abort();
    zoo_set_debug_level((ZooLogLevel)0); /* no log: the history has what matters */
    zoo_deterministic_conn_order(1);
    zookeeper_enter(session, caller);
    session->handle = zookeeper_init(where, on_session_event, (int)timeout_ms, NULL, session, 0);
    zookeeper_leave(session);
    if (!session->handle) abort(); /* no memory, or a malformed list of servers */
    return session;
}

void zookeeper_session_close(struct zookeeper_session *session, struct live_task *caller) {
    if (!session) return;
    zookeeper_enter(session, caller);
    session->tender = NULL;
    zookeeper_close(session->handle);
    zookeeper_leave(session);
    live_task_count_unawaited(caller);
    zookeeper_reply_drop(session);
    close(session->tend_fd);
    close(session->wake_fd);
    close(session->news_fd);
    pthread_mutex_destroy(&session->mutex);
    free(session);
}

enum env_session_state zookeeper_session_state(struct zookeeper_session *session) {
    pthread_mutex_lock(&session->mutex);
    enum env_session_state state = session->state;
    pthread_mutex_unlock(&session->mutex);
    return state;
}

int64_t zookeeper_session_timeout_ms(struct zookeeper_session *session) {
    pthread_mutex_lock(&session->mutex);
    int64_t timeout_ms = session->state == ENV_SESSION_CONNECTED ? zoo_recv_timeout(session->handle) : 0;
    pthread_mutex_unlock(&session->mutex);
    return timeout_ms;
}

/* --- tending --- */

/* The library makes a new socket whenever it connects, often with an old descriptor number. epoll drops a closed one.
 */
static void watch_socket(const struct zookeeper_session *session, int fd, int interest) {
    struct epoll_event event = {.data.fd = fd};
    if (interest & ZOOKEEPER_READ) event.events |= EPOLLIN;
    if (interest & ZOOKEEPER_WRITE) event.events |= EPOLLOUT;
    if (fd >= 0 && epoll_ctl(session->tend_fd, EPOLL_CTL_MOD, fd, &event) != 0)
        epoll_ctl(session->tend_fd, EPOLL_CTL_ADD, fd, &event);
}

static int socket_events(const struct zookeeper_session *session) {
    struct epoll_event events[2];
    int count = epoll_wait(session->tend_fd, events, 2, 0), found = 0;
    for (int each = 0; each < count; each++) {
        if (events[each].data.fd == session->wake_fd) continue;
        if (events[each].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) found |= ZOOKEEPER_READ;
        if (events[each].events & EPOLLOUT) found |= ZOOKEEPER_WRITE;
    }
    return found;
}

/* The connection is lost, and with it the answer that the worker waits for; the library reports that only after it has
 * connected again. */
static void give_up_answer(struct zookeeper_session *session, int status) {
    if (status == ZOK || status == ZNOTHING || session->answered) return;
    session->answered = true;
    wakeup_send(session->news_fd);
}

/* One round; false: the session was dismissed or is lost. */
static bool zookeeper_tend(struct zookeeper_session *session, struct live_task *caller) {
    int fd = -1, interest = 0;
    struct timeval wait = {0};
    zookeeper_enter(session, caller);
    int status = zookeeper_interest(session->handle, &fd, &interest, &wait);
    give_up_answer(session, status);
    if (session->is_idle || session->state != ENV_SESSION_CONNECTED) live_task_count_unawaited(caller);
    bool goes_on = !session->dismissed && session->state != ENV_SESSION_LOST;
    zookeeper_leave(session);
    if (!goes_on || status == ZINVALIDSTATE) return false;
    if (status != ZOK) return true;
    watch_socket(session, fd, interest);
    int64_t wait_ns = (int64_t)wait.tv_sec * NS_PER_S + (int64_t)wait.tv_usec * NS_PER_US;
    session->is_idle = !live_task_await_readable(caller, session->tend_fd, live_task_mono_ns(caller) + wait_ns, true);
    int events = socket_events(session);
    if (events == 0) return true;
    zookeeper_enter(session, caller);
    bool was_connected = session->state == ENV_SESSION_CONNECTED;
    give_up_answer(session, zookeeper_process(session->handle, events));
    if (!was_connected) live_task_count_unawaited(caller); /* a new connection begins by sending what was queued */
    zookeeper_leave(session);
    return true;
}

void zookeeper_session_tend(struct zookeeper_session *session, struct env *env, struct live_task *caller) {
    zookeeper_enter(session, caller);
    session->tender = env;
    zookeeper_leave(session);
    while (zookeeper_tend(session, caller)) continue;
    zookeeper_enter(session, caller);
    session->tender = NULL;
    zookeeper_leave(session);
}

void zookeeper_session_dismiss(struct zookeeper_session *session) {
    pthread_mutex_lock(&session->mutex);
    session->dismissed = true;
    pthread_mutex_unlock(&session->mutex);
    wakeup_send(session->wake_fd);
}

/* --- requests --- */

static int send_request(struct zookeeper_session *session, enum env_tree_verb verb, const char *path,
                        const struct zookeeper_request *request) {
    zhandle_t *handle = session->handle;
    int sequential = ZOO_EPHEMERAL_SEQUENTIAL, persistent = ZOO_PERSISTENT;
    switch (verb) {
    case ENV_TREE_CREATE:
        return zoo_acreate2(handle, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, persistent, created, request);
    case ENV_TREE_CREATE_MINE:
        return zoo_acreate2(handle, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, sequential, created, request);
    case ENV_TREE_DELETE: return zoo_adelete(handle, path, -1, deleted, request);
    case ENV_TREE_CHILDREN: return zoo_aget_children(handle, path, 0, listed, request);
    case ENV_TREE_LOOK: return zoo_aexists(handle, path, 0, looked, request);
    case ENV_TREE_WATCH: return zoo_awexists(handle, path, on_watch, session, looked, request);
    }
    return ZBADARGUMENTS;
}

/* Returns true as soon as *is_there, which the session's mutex protects; false at the deadline. */
static bool zookeeper_await(struct zookeeper_session *session, struct live_task *caller, int64_t deadline_ns,
                            const bool *is_there) {
    for (;;) {
        wakeup_drain(session->news_fd); /* before the look: what comes after it wakes the wait below */
        pthread_mutex_lock(&session->mutex);
        bool there = *is_there;
        pthread_mutex_unlock(&session->mutex);
        if (there) return true;
        if (!live_task_await_readable(caller, session->news_fd, deadline_ns, true)) return false;
    }
}

struct env_reply zookeeper_session_ask(struct zookeeper_session *session, enum env_tree_verb verb, const char *path,
                                       struct live_task *caller, int64_t deadline_ns) {
    struct zookeeper_request *request = malloc(sizeof *request);
    if (!request) abort();
    zookeeper_enter(session, caller);
    zookeeper_reply_drop(session);
    *request = (struct zookeeper_request){session, ++session->ask};
    session->answered = false; /* before it is sent: the tending task may get the answer at once */
    int status = send_request(session, verb, path, request);
    if (status != ZOK) {
        free(request);
        session->answered = true;
        session->reply = failure_reply(session, status);
    }
    zookeeper_leave(session);
    live_task_count_unawaited(caller);
    zookeeper_await(session, caller, deadline_ns, &session->answered);
    pthread_mutex_lock(&session->mutex);
    session->answered = true; /* a later answer is ignored */
    struct env_reply reply = session->reply;
    pthread_mutex_unlock(&session->mutex);
    return reply;
}

bool zookeeper_session_await_news(struct zookeeper_session *session, struct live_task *caller, int64_t deadline_ns) {
    if (!zookeeper_await(session, caller, deadline_ns, &session->has_news)) return false;
    pthread_mutex_lock(&session->mutex);
    session->has_news = false;
    pthread_mutex_unlock(&session->mutex);
    return true;
}

#else /* without the library there is no session, and no parameter counts */
#pragma GCC diagnostic ignored "-Wunused-parameter"

SESSION_ABSENT(struct zookeeper_session *, zookeeper_session_open,
               (const char *where, int64_t timeout_ms, void (*changed)(struct env *, enum env_session_state, void *),
                void *argument, struct live_task *caller),
               NULL)
SESSION_ABSENT(void, zookeeper_session_close, (struct zookeeper_session * session, struct live_task *caller), )
SESSION_ABSENT(void, zookeeper_session_tend,
               (struct zookeeper_session * session, struct env *env, struct live_task *caller), )
SESSION_ABSENT(void, zookeeper_session_dismiss, (struct zookeeper_session * session), )
SESSION_ABSENT(enum env_session_state, zookeeper_session_state, (struct zookeeper_session * session), ENV_SESSION_LOST)
SESSION_ABSENT(int64_t, zookeeper_session_timeout_ms, (struct zookeeper_session * session), 0)
SESSION_ABSENT(struct env_reply, zookeeper_session_ask,
               (struct zookeeper_session * session, enum env_tree_verb verb, const char *path, struct live_task *caller,
                int64_t deadline_ns),
               (struct env_reply){.kind = ENV_REPLY_UNKNOWN})
SESSION_ABSENT(bool, zookeeper_session_await_news,
               (struct zookeeper_session * session, struct live_task *caller, int64_t deadline_ns), false)

#endif
