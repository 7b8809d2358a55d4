/* A session with an ensemble of ZooKeeper servers, through the official C client in its single-threaded form. Built
 * without that library there is no session; `lockstorm locks` lists such locks as not installed, so none is started.
 *
 * One task tends the session: it sends heartbeats, reads, and connects again. In the library's multi-threaded form that
 * is a thread of the library, by the machine's clock. Here it is the client's watchdog, by the trial's clock, with the
 * same behaviour: it goes on while the worker is busy, and stands still when the process is stopped. The worker sends
 * requests. Each function is given the task that calls it. Decision 0046. */
#pragma once

#include "harness/environment/env.h"
#include "harness/environment/live_task.h"

struct zookeeper_session;

/* Begins a session of that timeout; `where` are the servers, "host:port,...". It is SUSPENDED until a task tends it.
 * `changed` is called as env_session_open describes it. NULL only without the library. Freed by
 * zookeeper_session_close, which also ends it at the server if it can. */
struct zookeeper_session *zookeeper_session_open(const char *where, int64_t timeout_ms,
                                                 void (*changed)(struct env *, enum env_session_state, void *),
                                                 void *argument, struct live_task *caller);
void zookeeper_session_close(struct zookeeper_session *session, struct live_task *caller);

/* Tends it until zookeeper_session_dismiss is called, or the session is LOST. */
void zookeeper_session_tend(struct zookeeper_session *session, struct env *env, struct live_task *caller);
void zookeeper_session_dismiss(struct zookeeper_session *session);

enum env_session_state zookeeper_session_state(struct zookeeper_session *session);
/* The session's timeout as the server has granted it; 0 before that. */
int64_t zookeeper_session_timeout_ms(struct zookeeper_session *session);

/* One request, as env_tree describes it. What the reply points to is the session's until the next request or its end.
 */
struct env_reply zookeeper_session_ask(struct zookeeper_session *session, enum env_tree_verb verb, const char *path,
                                       struct live_task *caller, int64_t deadline_ns);

/* Returns true when a watch has fired, or the state has changed, since this was last true; false at the stamp. */
bool zookeeper_session_await_news(struct zookeeper_session *session, struct live_task *caller, int64_t deadline_ns);
