/* The fence: the proof that nothing is in flight between the processes of a trial in virtual time. Only then may the
 * clock move past a task that waits for an answer which may stay away (a blocking pop).
 *
 * A fence asks the proxy to pass on what it has received and may pass on (SETTLE), then every server that may have
 * something to write PING, whose answer comes after everything that the server had to write before. It asks masters
 * whether their replicas have acknowledged (WAIT), and observes servers that cannot be asked until they are idle
 * (quiescence.h). A server that has received nothing since it last answered has nothing to write, so it is not asked:
 * the proxy says to which servers it has written.
 *
 * Servers are numbered from 0 in the order in which they are added. Decision 0009. */
#include "harness/scheduler/scheduler_state.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/hang_limit.h"
#include "harness/scheduler/quiescence.h"

/* The number of PINGs, one after the other, after which a server has written everything that it had to write. When a
 * PING comes in, so has what was sent before, but the PING may be answered first: hence two. The first also makes the
 * server look at its clock and end what has waited too long. A connection that was only just accepted is read after the
 * first PING: hence three. */
enum { PINGS_HEARD = 2, PINGS_ACCEPTED = 3 };
/* How long a server, the proxy or a process may take to answer or to become idle (hang_limit.h). */
enum { FENCE_LIMIT_MS = 60000 };
/* A Java machine that has only just started still computes for a long time, on one core that it shares. */
enum { THREADS_LIMIT_MS = 120000 };

/* The scheduler's own connection to a server that speaks RESP carries PING and WAIT, which only ask whether the server
 * has dealt with what it received. The address also tells which server the proxy has written to. A server that is
 * observed may have one, by which the proxy names it; without an address a server is not asked. */
struct fenced_server {
    char address[108];   /* path of a unix socket */
    redisContext *redis; /* NULL: not connected */
    int silent, busy;    /* number of reasons */
    int replicas;
    int pings_due;                /* after this many more, it has written everything that it had to write */
    int pid;                      /* of a server that is observed; 0: it is asked, or does not run */
    struct thread_watch *threads; /* of a server that has a timer */
    int timer;                    /* the thread that looks at the clock by itself; 0: none */
    int64_t timer_looked_ns;      /* the trial's clock when that thread last looked; -1: not yet */
};

struct fence {
    const struct shared_page *page;
    redisContext *proxy; /* its control connection; NULL: links lead straight to the servers */
    bool over_tcp;
    bool replicated; /* some server has, or had, replicas: what one receives, another does too */
    int servers;
    struct fenced_server server[SERVERS_MAX];
    bool settled;         /* nothing was in flight when the last fence had passed */
    uint64_t traffic;     /* of the page, when that fence began */
    uint64_t unawaited;   /* of the page, when a turn was last given */
    char unanswered[160]; /* why the last fence that failed did; empty: none has */
};

/* --- connections to servers --- */

static bool write_appended(redisContext *redis) {
    int written = 0;
    while (!written)
        if (redisBufferWrite(redis, &written) != REDIS_OK) return false;
    return true;
}

/* Sends what was appended to a connection of hiredis' and reads one reply, which the caller frees. NULL: none within
 * FENCE_LIMIT_MS, or the connection was lost; it is of no more use then. */
static redisReply *server_connection_read(redisContext *redis) {
    void *reply = NULL;
    int64_t until_ns = hang_limit_deadline_ns(FENCE_LIMIT_MS);
    if (redis->err || !write_appended(redis)) return NULL;
    while (redisGetReplyFromReader(redis, &reply) == REDIS_OK && !reply)
        if (!hang_limit_await_readable(redis->fd, until_ns) || redisBufferRead(redis) != REDIS_OK) return NULL;
    return reply;
}

/* The name distinguishes this connection from the clients' in a server's list of connections; the store keeps no such
 * list. */
static void open_connection(struct fenced_server *server) {
    server->redis = redisConnectUnix(server->address);
    if (!server->redis || server->redis->err) return;
    redisAppendCommand(server->redis, "CLIENT SETNAME lockstorm");
    freeReplyObject(server_connection_read(server->redis));
}

static void server_connection_close(struct fenced_server *server) {
    if (server->redis) redisFree(server->redis);
    server->redis = NULL;
}

/* Connects first if there is no connection. Never fails: receiving does. */
static void server_connection_ping_send(struct fenced_server *server) {
    if (!server->redis) open_connection(server);
    if (!server->redis || server->redis->err) return;
    redisAppendCommand(server->redis, "PING");
    write_appended(server->redis);
}

/* False: no answer within FENCE_LIMIT_MS, or the connection was lost; it is closed then. */
static bool server_connection_ping_receive(struct fenced_server *server) {
    redisReply *pong = server->redis ? server_connection_read(server->redis) : NULL;
    if (pong) {
        freeReplyObject(pong);
        return true;
    }
    server_connection_close(server);
    return false;
}

static bool server_connection_ping(struct fenced_server *server) {
    server_connection_ping_send(server);
    return server_connection_ping_receive(server);
}

/* Returns true when this number of replicas has acknowledged everything that the server had sent them when it was last
 * asked PING, and the server has written what clients that sat in WAIT were owed for that. Only when connected.
 * Without a limit of the server's: the server's clock stands still, so a limit would never be reached either.
 * Since Redis 8, WAIT is about what this connection itself has had sent to replicas: hence a message to nobody, which
 * they receive after everything else. */
static bool server_connection_await_replicas(struct fenced_server *server, int replicas) {
    redisAppendCommand(server->redis, "PUBLISH lockstorm-fence -");
    redisAppendCommand(server->redis, "WAIT %d 0", replicas);
    freeReplyObject(server_connection_read(server->redis));
    redisReply *reply = server_connection_read(server->redis);
    bool acknowledged = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer >= replicas;
    freeReplyObject(reply);
    return acknowledged && server_connection_ping(server);
}

/* --- what takes part --- */

struct fence *fence_open(const struct shared_page *page) {
    struct fence *fence = calloc(1, sizeof *fence);
    if (!fence) abort();
    fence->page = page;
    return fence;
}

void fence_close(struct fence *fence) {
    for (int each = 0; each < fence->servers; each++) {
        server_connection_close(&fence->server[each]);
        thread_watch_close(fence->server[each].threads);
    }
    if (fence->proxy) redisFree(fence->proxy);
    free(fence);
}

bool scheduler_set_proxy(struct scheduler *scheduler, const char *control_path, struct history_error *error) {
    struct fence *fence = scheduler->fence;
    fence->proxy = redisConnectUnix(control_path);
    if (fence->proxy && !fence->proxy->err) return true;
    return history_fail(error, "the proxy at %.100s: %.100s", control_path,
                        fence->proxy ? fence->proxy->errstr : "out of memory");
}

void scheduler_set_tcp(struct scheduler *scheduler) {
    scheduler->fence->over_tcp = true;
}

void fence_add_server(struct fence *fence, const char *socket_path) {
    assert(fence->servers < SERVERS_MAX); /* server_clocks_add has refused one more */
    struct fenced_server *server = &fence->server[fence->servers++];
    snprintf(server->address, sizeof server->address, "%s", socket_path ? socket_path : "");
}

void scheduler_set_server_process(struct scheduler *scheduler, int number, int pid) {
    struct fenced_server *server = &scheduler->fence->server[number];
    server_clocks_forget_alarms(scheduler, number);
    thread_watch_close(server->threads);
    server->threads = NULL;
    server->timer = 0;
    server->pid = pid;
}

void scheduler_set_server_timer(struct scheduler *scheduler, int number, int thread, const char *address) {
    struct fenced_server *server = &scheduler->fence->server[number];
    assert(server->pid > 0 && !server->threads); /* scheduler_set_server_process comes before */
    snprintf(server->address, sizeof server->address, "%s", address);
    server->threads = thread_watch_open(server->pid, thread);
    server->timer = thread;
    server->timer_looked_ns = -1;
    scheduler->fence->over_tcp = true;
}

void scheduler_set_server_replicas(struct scheduler *scheduler, int server, int replicas) {
    scheduler->fence->server[server].replicas = replicas;
    if (replicas > 0) scheduler->fence->replicated = true;
}

void scheduler_set_server_silent(struct scheduler *scheduler, int server, bool silent) {
    server_connection_close(&scheduler->fence->server[server]);
    reasons_count(&scheduler->fence->server[server].silent, silent);
}

void scheduler_set_server_busy(struct scheduler *scheduler, int server, bool busy) {
    reasons_count(&scheduler->fence->server[server].busy, busy);
}

static bool fenced_server_works(const struct fenced_server *server) {
    return server->silent == 0 && server->busy == 0;
}

bool scheduler_server_works(const struct scheduler *scheduler, int server) {
    return fenced_server_works(&scheduler->fence->server[server]);
}

/* Twice: the first may find only that the connection was lost. */
bool scheduler_server_answers(struct scheduler *scheduler, int server) {
    struct fenced_server *asked = &scheduler->fence->server[server];
    return server_connection_ping(asked) || server_connection_ping(asked);
}

/* --- what may be in flight --- */

static void owe_pings(struct fenced_server *server, int pings) {
    if (server->pings_due < pings) server->pings_due = pings;
}

static void owe_pings_all(struct fence *fence) {
    for (int each = 0; each < fence->servers; each++) owe_pings(&fence->server[each], PINGS_ACCEPTED);
}

void fence_mark_unsettled(struct fence *fence) {
    fence->settled = false;
}

void fence_mark_clock(struct fence *fence, int server) {
    owe_pings(&fence->server[server], PINGS_HEARD);
}

void fence_mark_all(struct fence *fence) {
    fence->settled = false;
    owe_pings_all(fence);
}

bool fence_has_timer(const struct fence *fence) {
    for (int each = 0; each < fence->servers; each++)
        if (fence->server[each].timer) return true;
    return false;
}

/* --- the proof --- */

/* Writes the reason down and returns false, for a `return unanswered(...)`. */
__attribute__((format(printf, 2, 3))) static bool unanswered(struct fence *fence, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fence->unanswered, sizeof fence->unanswered, format, arguments);
    va_end(arguments);
    return false;
}

const char *scheduler_unanswered(const struct scheduler *scheduler) {
    return scheduler->fence->unanswered;
}

/* The proxy has connected to the server at this address (`joined`), or has only written to it or closed a connection.
 * An address that is not known may stand for any server. */
static void owe_pings_at(struct fence *fence, const char *address, bool joined) {
    for (int each = 0; each < fence->servers; each++) {
        struct fenced_server *server = &fence->server[each];
        if (strcmp(server->address, address) != 0) continue;
        owe_pings(server, joined ? PINGS_ACCEPTED : PINGS_HEARD);
        return;
    }
    owe_pings_all(fence);
}

/* The proxy passes on everything that it has received and may pass on, and names the servers concerned. */
static bool proxy_settle(struct fence *fence) {
    if (!fence->proxy) return true;
    redisAppendCommand(fence->proxy, "SETTLE TARGETS");
    redisReply *reply = server_connection_read(fence->proxy);
    bool settled = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements % 2 == 1;
    for (size_t each = 1; settled && each < reply->elements; each += 2)
        owe_pings_at(fence, reply->element[each]->str, reply->element[each + 1]->integer != 0);
    freeReplyObject(reply);
    return settled || unanswered(fence, "the proxy does not answer");
}

static bool is_asked(const struct fenced_server *server) {
    return server->address[0] != '\0' && !server->pid && !server->silent;
}

static bool is_observed(const struct fenced_server *server) {
    return server->pid && !server->silent;
}

/* One PING to every server that is owed one, all at once. A connection that turns out to be lost is made anew, once. */
static bool ping_round(struct fence *fence) {
    bool asked[SERVERS_MAX], used_before[SERVERS_MAX];
    for (int each = 0; each < fence->servers; each++) {
        struct fenced_server *server = &fence->server[each];
        used_before[each] = server->redis != NULL;
        asked[each] = is_asked(server) && server->pings_due > 0;
        if (!asked[each]) continue;
        server_connection_ping_send(server);
        server->pings_due--;
    }
    for (int each = 0; each < fence->servers; each++) {
        struct fenced_server *server = &fence->server[each];
        if (!asked[each] || server_connection_ping_receive(server)) continue;
        if (!used_before[each] || !server_connection_ping(server))
            return unanswered(fence, "no answer to a PING at %s", server->address);
    }
    return true;
}

static bool replicas_acknowledge(struct fence *fence) {
    for (int each = 0; each < fence->servers; each++) {
        struct fenced_server *server = &fence->server[each];
        if (!fenced_server_works(server) || server->replicas == 0) continue;
        if (!server_connection_await_replicas(server, server->replicas))
            return unanswered(fence, "the replicas of %s do not acknowledge", server->address);
    }
    return true;
}

/* Nothing wakes the thread that ends sessions: it wakes by the machine's clock, and then looks at the trial's. */
static bool timer_looks(const struct fence *fence, struct fenced_server *server) {
    int64_t now_ns = shared_page_mono_ns(fence->page);
    if (!shared_page_is_virtual(fence->page) || server->timer_looked_ns == now_ns) return true;
    if (!server->threads || !timer_await_round(server->threads, FENCE_LIMIT_MS)) return false;
    server->timer_looked_ns = now_ns;
    return true;
}

static bool packets_arrive(struct fence *fence) {
    return !fence->over_tcp || packets_await_delivery(FENCE_LIMIT_MS) ||
           unanswered(fence, "packets do not arrive on this machine");
}

static bool observed_servers_are_idle(struct fence *fence) {
    int pids[SERVERS_MAX], count = 0;
    for (int each = 0; each < fence->servers; each++) {
        struct fenced_server *server = &fence->server[each];
        if (!is_observed(server)) continue;
        server->pings_due = 0;
        if (!server->timer) {
            pids[count++] = server->pid;
            continue;
        }
        if (!timer_looks(fence, server)) return unanswered(fence, "process %d does not look at its clock", server->pid);
        if (!server->threads || !threads_await_quiescence(server->threads, THREADS_LIMIT_MS))
            return unanswered(fence, "process %d does not become idle", server->pid);
    }
    return families_await_quiescence(pids, count, FENCE_LIMIT_MS) ||
           unanswered(fence, "process %d or its children do not become idle", pids[0]);
}

/* Every server has written what it had to write. Only the proxy knows which servers have received something, and it
 * knows only where servers do not talk to each other. */
static bool servers_have_written(struct fence *fence) {
    if (fence->replicated || !fence->proxy) owe_pings_all(fence);
    for (int round = 0; round < PINGS_ACCEPTED; round++)
        if (!ping_round(fence)) return false;
    /* After the PINGs: masters have then sent what WAIT asks their replicas about. */
    return replicas_acknowledge(fence) && packets_arrive(fence) && observed_servers_are_idle(fence);
}

static bool pings_are_due(const struct fence *fence) {
    for (int each = 0; each < fence->servers; each++) {
        const struct fenced_server *server = &fence->server[each];
        if (server->pings_due > 0 && (is_observed(server) || is_asked(server))) return true;
    }
    return false;
}

/* What was sent has been received, what had to be answered has been answered, and the answers have arrived. An answer
 * can make the proxy write to a server again, or close a connection to it: then the servers are asked again. Not where
 * there are replicas: these acknowledge what the fence itself makes their master send, so it would never end. */
static bool fence_pass(struct fence *fence) {
    /* The proxy first: only it can say which servers are to be asked, and it may hold what they have to answer. */
    if (!packets_arrive(fence) || !proxy_settle(fence)) return false;
    do {
        if (!servers_have_written(fence) || !packets_arrive(fence) || !proxy_settle(fence)) return false;
    } while (!fence->replicated && pings_are_due(fence));
    return packets_arrive(fence); /* answers that the proxy has only now passed on */
}

bool fence_settle(struct fence *fence) {
    uint64_t traffic = atomic_load_explicit(&fence->page->traffic, memory_order_acquire);
    if (fence->settled && fence->traffic == traffic) return true;
    /* As it was before the fence: what is sent while it passes makes the next one pass again. */
    fence->traffic = traffic;
    fence->settled = fence_pass(fence);
    return fence->settled;
}

bool fence_settle_before_turn(struct fence *fence) {
    uint64_t unawaited = atomic_load_explicit(&fence->page->unawaited, memory_order_acquire);
    bool overtakes = unawaited != fence->unawaited;
    fence->unawaited = unawaited;
    if (!overtakes && !atomic_load_explicit(&fence->page->unreliable, memory_order_acquire)) return true;
    return fence_settle(fence);
}

void scheduler_process_catch_up(const struct scheduler *scheduler, int pid) {
    if (shared_page_is_virtual(scheduler->page)) processes_await_quiescence(pid, FENCE_LIMIT_MS);
}
