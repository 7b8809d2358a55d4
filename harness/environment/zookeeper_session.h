/* A session with an ensemble of ZooKeeper servers, through the official C client in its single-threaded form. Built
 * without that library there is no session; `lockstorm locks` lists such locks as not installed, so none is started.
 *
 * One task tends the session: it sends heartbeats, reads, and connects again. In the library's multi-threaded form that
 * is a thread of the library, by the machine's clock. Here it is the client's watchdog, by the trial's clock, with the
 * same behaviour: it goes on while the worker is busy, and stands still when the process is stopped. The worker sends
 * requests. The session knows neither a clock nor a turn: each caller passes its clock and its way to wait.
 * Decision 0046. */
#pragma once

#include "harness/environment/env.h"

struct zookeeper_session;

/* The task that calls. */
struct zookeeper_caller {
    int64_t (*mono_ns)(void *holder);
    /* Returns when the descriptor can be read (true), or at the stamp (false). */
    bool (*readable)(void *holder, int fd, int64_t deadline_ns);
    void (*sent)(void *holder); /* called when something may have been sent */
    void *holder;
};

/* What the tending task calls when the session's state changes. */
struct zookeeper_listener {
    void (*changed)(void *holder, enum env_session_state state);
    void *holder;
};

/* Begins a session of that timeout; `where` are the servers, "host:port,...". It is SUSPENDED until a task tends it.
 * NULL only without the library. Freed by zookeeper_session_close, which also ends it at the server if it can. */
struct zookeeper_session *zookeeper_session_open(const char *where, int64_t timeout_ms,
                                                 const struct zookeeper_caller *caller);
void zookeeper_session_close(struct zookeeper_session *session, const struct zookeeper_caller *caller);

/* Tends it until zookeeper_session_dismiss is called, or the session is LOST. */
void zookeeper_session_tend(struct zookeeper_session *session, const struct zookeeper_caller *caller,
                            const struct zookeeper_listener *listener);
void zookeeper_session_dismiss(struct zookeeper_session *session);

enum env_session_state zookeeper_session_state(struct zookeeper_session *session);
/* The session's timeout as the server has granted it; 0 before that. */
int64_t zookeeper_session_timeout_ms(struct zookeeper_session *session);

/* One request, as env_tree describes it. What the reply points to is the session's until the next request or its end.
 */
struct env_reply zookeeper_session_ask(struct zookeeper_session *session, enum env_tree_verb verb, const char *path,
                                       const struct zookeeper_caller *caller, int64_t deadline_ns);

/* Returns true when a watch has fired, or the state has changed, since this was last true; false at the stamp. */
bool zookeeper_session_await_news(struct zookeeper_session *session, const struct zookeeper_caller *caller,
                                  int64_t deadline_ns);
