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
#pragma once

#include "harness/scheduler/shared_page.h"

struct fence;

/* `page` stays the caller's and outlives the fence. The caller frees with fence_close. */
struct fence *fence_open(const struct shared_page *page);
void fence_close(struct fence *fence);

/* Adds a server that speaks RESP on the unix socket at `socket_path`; NULL: see scheduler_set_server_process. At most
 * SERVERS_MAX, which the caller sees to. */
void fence_add_server(struct fence *fence, const char *socket_path);

/* --- what may be in flight --- */

/* Something may be in flight, so the next fence_settle does not rely on the last one. */
void fence_mark_unsettled(struct fence *fence);
/* The server's clock has moved, so it may have something to write. */
void fence_mark_clock(struct fence *fence, int server);
/* The driver may have released something, or have talked to any server: all of it may be in flight. */
void fence_mark_all(struct fence *fence);
/* Whether some server acts by the trial's clock without being asked (scheduler_set_server_timer). */
bool fence_has_timer(const struct fence *fence);

/* --- the proof --- */

/* Returns when nothing is in flight any more, but for what a fault holds back. Does nothing when no task has sent
 * anything since the last time and nothing was marked. False: scheduler_unanswered says which part did not answer. */
bool fence_settle(struct fence *fence);
/* The same before a turn is given, and only where it is needed: when the last turn sent something without waiting for
 * the answer, or when replies may stay away. Otherwise a later message could overtake it: a server reads its
 * connections in an order of its own. */
bool fence_settle_before_turn(struct fence *fence);
