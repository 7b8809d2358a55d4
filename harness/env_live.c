#include "harness/env_live.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "harness/adapter_session.h"
#include "harness/env_ops.h"
#include "harness/env_reply.h"
#include "harness/http_session.h"
#include "harness/random.h"
#include "harness/sql_session.h"
#include "harness/tree_session.h"

/* A connection that is only subscribed, and the messages that came while something else was waited for. */
struct subscriber {
    redisContext *link;
    redisReply **kept;
    size_t kept_count;
};

/* What a lock wants to hear of its session, for the strand that tends it. */
struct tending {
    struct tree_session *tree;
    struct live *live; /* that strand's */
    void (*changed)(struct env *, enum env_session_state, void *);
    void *argument;
};

struct live {
    struct env env; /* first: a struct env * is a struct live * */
    struct env_live_options options;
    struct strand strand;
    struct random random;
    redisContext *links[ENV_LIVE_NODES];
    struct subscriber subscribers[ENV_LIVE_NODES];
    struct sql_session *sessions[ENV_LIVE_NODES];
    struct http_session *posts[ENV_LIVE_NODES], *streams[ENV_LIVE_NODES];
    struct tree_session *tree; /* the worker's; its watchdog tends it */
    struct adapter_session *adapter;
    redisReply *raw;
    struct env_reply reply;
    struct env_reply answer; /* a session's: what it points to is not ours */
    /* Only in the worker: */
    struct tending tending;
    struct live *watchdog; /* NULL: none runs */
    pthread_t thread;
    /* Only in the watchdog: */
    struct live *worker;
    void (*run)(struct env *, void *);
    void *argument;
    _Atomic bool stopping;
};

static struct live *live_of(struct env *env) {
    return (struct live *)env;
}

static const struct live *live_of_const(const struct env *env) {
    return (const struct live *)env;
}

static int64_t live_mono_ns(const struct env *env) {
    return stage_host_mono_ns(live_of_const(env)->strand.stage, live_of_const(env)->options.host);
}

/* How long this host was suspended so far. */
static int64_t suspended_ns(const struct live *live) {
    const struct strand_place *host = live->options.host;
    return host ? atomic_load_explicit(&host->suspended_ns, memory_order_acquire) : 0;
}

/* A stamp of this host's clock as one of the trial's, if the host is not suspended before. */
static int64_t trial_stamp(const struct live *live, int64_t host_ns) {
    int64_t gap_ns = suspended_ns(live);
    return host_ns > INT64_MAX - gap_ns ? INT64_MAX : host_ns + gap_ns;
}

/* --- replies --- */

static void reply_drop(struct live *live) {
    env_reply_free(&live->reply);
    live->reply = (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
    if (live->raw) freeReplyObject(live->raw);
    live->raw = NULL;
}

/* --- commands --- */

/* Something goes out of which the conductor has to wait until it has arrived. */
static void traffic_tell(const struct live *live) {
    atomic_fetch_add_explicit(&live->strand.stage->traffic, 1, memory_order_release);
}

/* The same, and the turn may go on before it has: who comes next must not overtake it. */
static void unawaited_tell(const struct live *live) {
    traffic_tell(live);
    atomic_fetch_add_explicit(&live->strand.stage->unawaited, 1, memory_order_release);
}

static void link_drop(struct live *live, int node) {
    if (live->links[node]) unawaited_tell(live);
    if (live->links[node]) redisFree(live->links[node]);
    live->links[node] = NULL;
}

/* A connection to a node in *link, made if there is none; NULL: it cannot be had. */
static redisContext *link_get(struct live *live, redisContext **link, int node) {
    if (node < 0 || node >= live->options.node_count) abort();
    traffic_tell(live);
    if (!*link) *link = redisConnectUnixNonBlock(live->options.nodes[node]);
    if (*link && (*link)->err) {
        redisFree(*link);
        *link = NULL;
    }
    return *link;
}

/* Without hiredis, whose write to a connection that the server has closed would end this process by SIGPIPE. Whether it
 * could all be sent is not asked: what a server said before it closed can be read all the same, else the end. */
static void send_all(int fd, const char *bytes, size_t left) {
    while (left > 0) {
        ssize_t sent = send(fd, bytes, left, MSG_NOSIGNAL);
        if (sent >= 0) bytes += sent, left -= (size_t)sent;
        else if (errno == EAGAIN) poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (errno != EINTR) return;
    }
}

/* Reads until a whole reply is there; NULL: none came in time, or the connection was lost. A wait ends at give_up_ns;
 * at look_ns an answer that the server gives by its own clock is looked for. */
static redisReply *receive(struct live *live, redisContext *link, int64_t look_ns, int64_t give_up_ns, bool may_block) {
    void *reply = NULL;
    while (redisGetReplyFromReader(link, &reply) == REDIS_OK) {
        if (reply) return reply;
        int64_t gap_ns = suspended_ns(live);
        if (!strand_wait_readable(&live->strand, link->fd, trial_stamp(live, look_ns), may_block)) {
            if (suspended_ns(live) != gap_ns) continue; /* no time has passed for us */
            if (look_ns == give_up_ns) return NULL;
            look_ns = give_up_ns;
        } else if (redisBufferRead(link) == REDIS_ERR) {
            return NULL;
        }
    }
    return NULL;
}

static int64_t deadline_after(const struct live *live, int64_t limit_ns) {
    int64_t now_ns = live_mono_ns(&live->env);
    return limit_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + limit_ns;
}

/* What a client library sees of an idle connection, too: the other side has closed it. */
static bool is_closed(const redisContext *link) {
    char byte;
    ssize_t got = recv(link->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* A connection that was closed while nothing was asked on it is made anew. One on which a reply is still outstanding is
 * given up: the next command must not read this one's reply. */
static const struct env_reply *live_command(struct env *env, int node, const char *command, size_t length,
                                            int64_t limit_ns, bool may_block) {
    struct live *live = live_of(env);
    reply_drop(live);
    if (live->links[node] && is_closed(live->links[node])) link_drop(live, node);
    redisContext *link = link_get(live, &live->links[node], node);
    bool sits = may_block && limit_ns != INT64_MAX;
    int64_t look_ns = deadline_after(live, sits ? limit_ns + ENV_NS_PER_MS : limit_ns);
    int64_t give_up_ns = sits ? look_ns + live->options.reply_limit_ms * ENV_NS_PER_MS : look_ns;
    if (link) {
        if (may_block) unawaited_tell(live);
        send_all(link->fd, command, length);
        live->raw = receive(live, link, look_ns, give_up_ns, may_block);
    }
    if (live->raw) {
        env_reply_fill(&live->reply, live->raw);
    } else {
        link_drop(live, node);
    }
    return &live->reply;
}

/* --- statements --- */

struct patience {
    struct live *live;
    int64_t deadline_ns;
    bool may_block;
};

static bool patient_readable(const struct patience *patience, int fd) {
    struct live *live = patience->live;
    for (;;) {
        int64_t gap_ns = suspended_ns(live);
        if (strand_wait_readable(&live->strand, fd, trial_stamp(live, patience->deadline_ns), patience->may_block))
            return true;
        if (suspended_ns(live) == gap_ns) return false; /* else no time has passed for us */
    }
}

/* A statement takes several messages when its session has to begin first: each is waited for, and told before. */
static bool session_readable(void *holder, int fd) {
    const struct patience *patience = holder;
    (patience->may_block ? unawaited_tell : traffic_tell)(patience->live);
    return patient_readable(patience, fd);
}

static void session_drop(struct live *live, int node) {
    if (live->sessions[node]) unawaited_tell(live);
    sql_session_close(live->sessions[node]);
    live->sessions[node] = NULL;
}

/* A session holds locks and transactions: one that was lost is never replaced behind the lock's back. */
static const struct env_reply *live_query(struct env *env, int node, const char *statement,
                                          const char *const *parameters, size_t count, int64_t limit_ns,
                                          bool may_block) {
    struct live *live = live_of(env);
    if (node < 0 || node >= live->options.node_count) abort();
    reply_drop(live);
    struct patience usual = {live, deadline_after(live, live->options.reply_limit_ms * ENV_NS_PER_MS), false};
    struct patience asked = {live, deadline_after(live, limit_ns), may_block};
    struct sql_session **session = &live->sessions[node];
    if (!*session) *session = sql_session_open(live->options.nodes[node], &(struct sql_wait){session_readable, &usual});
    struct sql_wait wait = {session_readable, &asked};
    if (*session && sql_session_run(*session, statement, parameters, count, &wait, &live->answer)) return &live->answer;
    session_drop(live, node);
    return &live->reply;
}

/* --- requests --- */

static void post_drop(struct live *live, struct http_session **session) {
    if (*session) traffic_tell(live);
    http_session_close(*session);
    *session = NULL;
}

/* A session that is ready for another request; false: it cannot be had. */
static bool post_begin(struct live *live, struct http_session **session, int node, const char *path, const char *body) {
    if (node < 0 || node >= live->options.node_count) abort();
    if (!*session) *session = http_session_open(live->options.nodes[node]);
    return *session && http_session_begin(*session, path, body);
}

static const struct env_reply *live_post(struct env *env, int node, const char *path, const char *body,
                                         int64_t limit_ns) {
    struct live *live = live_of(env);
    struct patience asked = {live, deadline_after(live, limit_ns), false};
    struct http_session **session = &live->posts[node];
    reply_drop(live);
    if (post_begin(live, session, node, path, body) &&
        http_session_answer(*session, &(struct http_wait){session_readable, &asked}, &live->answer))
        return &live->answer;
    post_drop(live, session);
    return &live->reply;
}

static enum outcome live_stream(struct env *env, int node, const char *path, const char *body) {
    struct live *live = live_of(env);
    if (post_begin(live, &live->streams[node], node, path, body)) return OUTCOME_OK;
    post_drop(live, &live->streams[node]);
    return OUTCOME_UNKNOWN;
}

static const struct env_reply *live_stream_line(struct env *env, int node, int64_t limit_ns) {
    struct live *live = live_of(env);
    struct patience asked = {live, deadline_after(live, limit_ns), true};
    struct http_session *session = live->streams[node];
    reply_drop(live);
    if (session && http_session_line(session, &(struct http_wait){session_readable, &asked}, &live->answer))
        return &live->answer;
    return &live->reply;
}

static void live_stream_end(struct env *env, int node) {
    struct live *live = live_of(env);
    post_drop(live, &live->streams[node]);
}

/* --- the adapter --- */

static bool live_adapter_tell(struct env *env, const char *line) {
    struct live *live = live_of(env);
    if (!live->adapter && live->options.adapter) live->adapter = adapter_session_open(live->options.adapter);
    return live->adapter && adapter_session_tell(live->adapter, line);
}

static const struct env_reply *live_adapter_hear(struct env *env, int64_t limit_ns) {
    struct live *live = live_of(env);
    struct patience asked = {live, deadline_after(live, limit_ns), true};
    reply_drop(live);
    if (!live->adapter) return &live->reply;
    live->answer = adapter_session_hear(live->adapter, &(struct adapter_wait){session_readable, &asked});
    return &live->answer;
}

static const char *live_node_address(const struct env *env, int node) {
    return live_of_const(env)->options.nodes[node];
}

static void live_give_up(struct env *env, const char *sentence) {
    (void)env;
    fprintf(stderr, "client: %s\n", sentence);
    exit(ENV_LIVE_GAVE_UP);
}

/* --- subscriptions --- */

static void subscriber_forget(struct subscriber *subscriber) {
    for (size_t each = 0; each < subscriber->kept_count; each++) freeReplyObject(subscriber->kept[each]);
    free(subscriber->kept);
    subscriber->kept = NULL;
    subscriber->kept_count = 0;
}

static void subscriber_drop(const struct live *live, struct subscriber *subscriber) {
    subscriber_forget(subscriber);
    if (subscriber->link) unawaited_tell(live);
    if (subscriber->link) redisFree(subscriber->link);
    subscriber->link = NULL;
}

static bool is_push(const redisReply *reply, const char *kind) {
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && reply->element[0]->type == REDIS_REPLY_STRING &&
           strcasecmp(reply->element[0]->str, kind) == 0;
}

static void subscriber_keep(struct subscriber *subscriber, redisReply *message) {
    redisReply **kept = realloc(subscriber->kept, (subscriber->kept_count + 1) * sizeof *kept);
    if (!kept) abort();
    kept[subscriber->kept_count++] = message;
    subscriber->kept = kept;
}

/* Sends SUBSCRIBE or UNSUBSCRIBE and waits for its confirmation; messages that come before it are kept. */
static enum outcome subscriber_ask(struct live *live, int node, const char *verb, const char *channel, size_t length) {
    struct subscriber *subscriber = &live->subscribers[node];
    redisContext *link = link_get(live, &subscriber->link, node);
    char *command = NULL;
    int bytes = redisFormatCommand(&command, "%s %b", verb, channel, length);
    bool asked = link && bytes > 0;
    if (asked) send_all(link->fd, command, (size_t)bytes);
    int64_t deadline_ns = deadline_after(live, live->options.reply_limit_ms * ENV_NS_PER_MS);
    redisFreeCommand(command);
    while (asked) {
        redisReply *reply = receive(live, link, deadline_ns, deadline_ns, false);
        if (!reply) break;
        if (is_push(reply, "message")) {
            subscriber_keep(subscriber, reply);
            continue;
        }
        bool confirmed = is_push(reply, verb);
        freeReplyObject(reply);
        if (confirmed) return OUTCOME_OK;
        break;
    }
    subscriber_drop(live, subscriber);
    return OUTCOME_UNKNOWN;
}

static enum outcome live_subscribe(struct env *env, int node, const char *channel, size_t length) {
    return subscriber_ask(live_of(env), node, "SUBSCRIBE", channel, length);
}

static void live_unsubscribe(struct env *env, int node, const char *channel, size_t length) {
    struct live *live = live_of(env);
    if (live->subscribers[node].link) subscriber_ask(live, node, "UNSUBSCRIBE", channel, length);
    subscriber_forget(&live->subscribers[node]);
}

static redisReply *subscriber_next(struct live *live, int node, int64_t deadline_ns) {
    struct subscriber *subscriber = &live->subscribers[node];
    if (subscriber->kept_count > 0) {
        redisReply *first = subscriber->kept[0];
        memmove(subscriber->kept, subscriber->kept + 1, --subscriber->kept_count * sizeof *subscriber->kept);
        return first;
    }
    return subscriber->link ? receive(live, subscriber->link, deadline_ns, deadline_ns, true) : NULL;
}

/* A connection that ended a wait before its time is lost: its subscriptions are gone. */
static const struct env_reply *live_message(struct env *env, int node, int64_t limit_ns) {
    struct live *live = live_of(env);
    int64_t deadline_ns = deadline_after(live, limit_ns);
    reply_drop(live);
    while ((live->raw = subscriber_next(live, node, deadline_ns)) && !is_push(live->raw, "message")) reply_drop(live);
    if (live->raw) env_reply_fill(&live->reply, live->raw->element[2]);
    else if (live_mono_ns(env) < deadline_ns) subscriber_drop(live, &live->subscribers[node]);
    return &live->reply;
}

static void links_drop(struct live *live) {
    for (int node = 0; node < live->options.node_count; node++) {
        link_drop(live, node);
        subscriber_drop(live, &live->subscribers[node]);
        session_drop(live, node);
        post_drop(live, &live->posts[node]);
        post_drop(live, &live->streams[node]);
    }
}

/* --- the small ones --- */

static int live_nodes(const struct env *env) {
    return live_of_const(env)->options.node_count - live_of_const(env)->options.hidden_nodes;
}

static int64_t live_reply_limit_ms(const struct env *env) {
    return live_of_const(env)->options.reply_limit_ms;
}

static int64_t live_wall_ns(const struct env *env) {
    return stage_host_wall_ns(live_of_const(env)->strand.stage, live_of_const(env)->options.host);
}

static uint64_t live_random(struct env *env) {
    return random_next(&live_of(env)->random);
}

static void live_checkpoint(struct env *env, const char *name) {
    strand_checkpoint(&live_of(env)->strand, name);
}

static void live_tell_validity(struct env *env, int64_t valid_until_ns) {
    const struct env_live_options *options = &live_of(env)->options;
    if (options->told_validity) options->told_validity(options->holder, valid_until_ns);
}

/* --- the watchdog --- */

static bool live_watchdog_stopping(const struct env *env) {
    return atomic_load_explicit(&live_of_const(env)->stopping, memory_order_acquire);
}

static void live_sleep_until(struct env *env, int64_t mono_ns) {
    while (!live_watchdog_stopping(env) && live_mono_ns(env) < mono_ns)
        strand_sleep_until(&live_of(env)->strand, trial_stamp(live_of(env), mono_ns));
}

static void *watchdog_main(void *argument) {
    struct live *live = argument;
    strand_begin(&live->strand);
    live->run(&live->env, live->argument);
    reply_drop(live);
    links_drop(live);
    strand_end(&live->strand, &live->worker->strand);
    return NULL;
}

static void live_watchdog_stop(struct env *env) {
    struct live *worker = live_of(env), *live = worker->watchdog;
    if (!live) return;
    atomic_store_explicit(&live->stopping, true, memory_order_release);
    strand_await_end(&worker->strand, &live->strand);
    pthread_join(worker->thread, NULL);
    free(live);
    worker->watchdog = NULL;
}

static bool live_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument) {
    struct live *worker = live_of(env);
    if (worker->watchdog && strand_has_ended(&worker->watchdog->strand)) live_watchdog_stop(env);
    if (worker->watchdog || worker->worker || !worker->options.watchdog.place) return false;
    struct live *live = calloc(1, sizeof *live);
    if (!live) abort();
    live->env = worker->env;
    live->options = worker->options;
    live->strand = worker->options.watchdog;
    live->random = random_split(live->strand.stage->seed, worker->options.stream * 2 + 2);
    live->run = run;
    live->argument = argument;
    live->worker = worker;
    strand_announce(&live->strand);
    if (pthread_create(&worker->thread, NULL, watchdog_main, live) != 0) {
        atomic_store_explicit(&live->strand.place->state, STRAND_ABSENT, memory_order_release);
        free(live);
        return false;
    }
    worker->watchdog = live;
    return true;
}

/* --- a session with an ensemble --- */

static int64_t caller_mono_ns(void *holder) {
    return live_mono_ns(holder);
}

/* The other strand may have to act before this one can go on: so the turn is always given back. */
static bool caller_readable(void *holder, int fd, int64_t deadline_ns) {
    return patient_readable(&(struct patience){holder, deadline_ns, true}, fd);
}

/* A server of an ensemble shuffles those it finds talking at the same time. */
static void caller_sent(void *holder) {
    unawaited_tell(holder);
}

static struct tree_caller caller_of(struct live *live) {
    return (struct tree_caller){caller_mono_ns, caller_readable, caller_sent, live};
}

static void tree_changed(void *holder, enum env_session_state state) {
    const struct tending *tending = holder;
    tending->changed(&tending->live->env, state, tending->argument);
}

static void tree_tend(struct env *env, void *argument) {
    struct tending *tending = argument;
    struct tree_caller caller = caller_of(live_of(env));
    tending->live = live_of(env);
    tree_session_tend(tending->tree, &caller, &(struct tree_listener){tree_changed, tending});
}

static void tree_end(struct live *live) {
    struct tree_caller caller = caller_of(live);
    if (!live->tree) return;
    tree_session_dismiss(live->tree);
    live_watchdog_stop(&live->env);
    tree_session_close(live->tree, &caller);
    live->tree = NULL;
}

/* The nodes as one list, "host:port,host:port"; the caller frees. */
static char *ensemble_of(const struct live *live) {
    size_t room = 1;
    int nodes = live_nodes(&live->env);
    for (int node = 0; node < nodes; node++) room += strlen(live->options.nodes[node]) + 1;
    char *where = calloc(room, 1);
    if (!where) abort();
    for (int node = 0; node < nodes; node++) {
        if (node > 0) strcat(where, ",");
        strcat(where, live->options.nodes[node]);
    }
    return where;
}

static bool tree_begin(struct live *live, int64_t timeout_ms) {
    struct tree_caller caller = caller_of(live);
    char *where = ensemble_of(live);
    live->tree = tree_session_open(where, timeout_ms, &caller);
    free(where);
    live->tending.tree = live->tree;
    return live->tree && live_watchdog_start(&live->env, tree_tend, &live->tending);
}

static enum env_session_state live_session_state(struct env *env) {
    struct live *live = live_of(env);
    return live->tree ? tree_session_state(live->tree) : ENV_SESSION_LOST;
}

static enum outcome live_session_open(struct env *env, int64_t timeout_ms,
                                      void (*changed)(struct env *, enum env_session_state, void *), void *argument) {
    struct live *live = live_of(env);
    struct tree_caller caller = caller_of(live);
    int64_t deadline_ns = deadline_after(live, live->options.reply_limit_ms * ENV_NS_PER_MS);
    if (live_session_state(env) == ENV_SESSION_LOST) {
        tree_end(live);
        live->tending.changed = changed;
        live->tending.argument = argument;
        if (!tree_begin(live, timeout_ms)) return OUTCOME_UNKNOWN;
    }
    while (live_session_state(env) == ENV_SESSION_SUSPENDED)
        if (!tree_session_await_news(live->tree, &caller, deadline_ns)) break;
    return tree_session_timeout_ms(live->tree) == timeout_ms ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static void live_session_end(struct env *env) {
    tree_end(live_of(env));
}

static const struct env_reply *live_tree(struct env *env, enum env_tree_verb verb, const char *path) {
    struct live *live = live_of(env);
    struct tree_caller caller = caller_of(live);
    int64_t deadline_ns = deadline_after(live, live->options.reply_limit_ms * ENV_NS_PER_MS);
    reply_drop(live);
    live->answer = (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
    if (live->tree) live->answer = tree_session_ask(live->tree, verb, path, &caller, deadline_ns);
    return &live->answer;
}

static bool live_tree_news(struct env *env, int64_t limit_ns) {
    struct live *live = live_of(env);
    struct tree_caller caller = caller_of(live);
    return live->tree && tree_session_await_news(live->tree, &caller, deadline_after(live, limit_ns));
}

static const struct env_ops LIVE_OPS = {
    .nodes = live_nodes,
    .command = live_command,
    .query = live_query,
    .post = live_post,
    .stream = live_stream,
    .stream_line = live_stream_line,
    .stream_end = live_stream_end,
    .session_open = live_session_open,
    .session_state = live_session_state,
    .session_end = live_session_end,
    .tree = live_tree,
    .tree_news = live_tree_news,
    .adapter_tell = live_adapter_tell,
    .adapter_hear = live_adapter_hear,
    .node_address = live_node_address,
    .give_up = live_give_up,
    .subscribe = live_subscribe,
    .unsubscribe = live_unsubscribe,
    .message = live_message,
    .reply_limit_ms = live_reply_limit_ms,
    .mono_ns = live_mono_ns,
    .wall_ns = live_wall_ns,
    .sleep_until = live_sleep_until,
    .random = live_random,
    .checkpoint = live_checkpoint,
    .tell_validity = live_tell_validity,
    .watchdog_start = live_watchdog_start,
    .watchdog_stop = live_watchdog_stop,
    .watchdog_stopping = live_watchdog_stopping,
};

struct env *env_live_open(const struct env_live_options *options) {
    struct live *live = calloc(1, sizeof *live);
    if (!live) abort();
    live->env.ops = &LIVE_OPS;
    live->options = *options;
    live->strand = options->worker;
    live->random = random_split(options->worker.stage->seed, options->stream * 2 + 1);
    return &live->env;
}

void env_live_close(struct env *env) {
    struct live *live = live_of(env);
    tree_end(live);
    live_watchdog_stop(env);
    adapter_session_close(live->adapter);
    reply_drop(live);
    links_drop(live);
    free(live);
}
