/* The fence: the proof that nothing is in flight between the processes of a trial in virtual time. Only then may the
 * clock move past a task that waits for an answer which may stay away (a blocking pop).
 *
 * A fence asks the proxy to pass on what it has received and may pass on (SETTLE), then every server that may have
 * something to write PING, whose answer comes after everything that the server had to write before. It asks masters
 * whether their replicas have acknowledged (WAIT), and observes servers that cannot be asked until they are idle
 * (quiescence.h). A server that has received nothing since it last answered has nothing to write, so it is not asked:
 * the proxy says to which servers it has written.
 *
 * Servers are numbered from 0 in the order in which they are added. */
#ifndef LOCKSTORM_FENCE_H
#define LOCKSTORM_FENCE_H

#include "harness/scheduler/server_connection.h"
#include "harness/scheduler/shared_page.h"

struct fence;

/* `page` stays the caller's and outlives the fence. The caller frees with fence_close. */
struct fence *fence_open(const struct shared_page *page);
void fence_close(struct fence *fence);

/* --- what takes part --- */

/* The proxy that all links lead through, by the path of its control socket. False with *error. */
bool fence_set_proxy(struct fence *fence, const char *control_path, struct history_error *error);
/* Some traffic goes over TCP, where a packet can be on its way without either side knowing. */
void fence_set_tcp(struct fence *fence);
/* Adds a server that speaks RESP on the unix socket at `socket_path`; NULL: see fence_set_process. At most SERVERS_MAX,
 * which the caller sees to. */
void fence_add_server(struct fence *fence, const char *socket_path);
/* The server cannot be asked: it has dealt with everything once the process `pid` and its children are idle. 0: it does
 * not run. */
void fence_set_process(struct fence *fence, int server, int pid);
/* That process is one with many threads, of which `thread` looks at the trial's clock by itself, again and again.
 * `address`, "host:port": how the proxy names the server. Follows fence_set_process. */
void fence_set_timer(struct fence *fence, int server, int thread, const char *address);
/* The number of replicas that must have acknowledged what the server has sent them; 0: none follows it. */
void fence_set_replicas(struct fence *fence, int server, int replicas);
/* The server cannot answer, on purpose, and is not asked; or answers but runs nothing (-BUSY). Both count reasons: said
 * twice, they end when they have been taken back twice. */
void fence_set_silent(struct fence *fence, int server, bool silent);
void fence_set_busy(struct fence *fence, int server, bool busy);

/* --- what may be in flight --- */

/* Something may be in flight, so the next fence_settle does not rely on the last one. */
void fence_mark_unsettled(struct fence *fence);
/* The server's clock has moved, so it may have something to write. */
void fence_mark_clock(struct fence *fence, int server);
/* The driver may have released something, or have talked to any server: all of it may be in flight. */
void fence_mark_all(struct fence *fence);
/* Whether some server acts by the trial's clock without being asked (fence_set_timer). */
bool fence_has_timer(const struct fence *fence);

/* --- the proof --- */

/* Returns when nothing is in flight any more, but for what a fault holds back. Does nothing when no task has sent
 * anything since the last time and nothing was marked. False: fence_unanswered says which part did not answer. */
bool fence_settle(struct fence *fence);
/* The same before a turn is given, and only where it is needed: when the last turn sent something without waiting for
 * the answer, or when replies may stay away. Otherwise a later message could overtake it: a server hears its
 * connections in an order of its own. */
bool fence_settle_before_turn(struct fence *fence);
/* Which part did not answer, or did not become idle, when a fence last failed; "": none has failed. */
const char *fence_unanswered(const struct fence *fence);
/* Returns when a process and its children, which had been stopped, are idle: they have dealt with what waited for them.
 * Gives up after FENCE_LIMIT_MS. */
void fence_catch_up(int pid);

/* Whether the server answers a PING now. */
bool fence_server_answers(struct fence *fence, int server);
/* Whether the server is neither silent nor busy. */
bool fence_server_works(const struct fence *fence, int server);

#endif
