/* A session with an ensemble of ZooKeeper servers, through the official C client in its single-threaded form. Built
 * without that library there is no session; `lockstorm locks` knows that, and nothing is started.
 *
 * The session needs somebody who tends it: sends its heartbeats, reads what comes, connects again. With the library's
 * multi-threaded form that is a thread of the library's own, by the machine's clock. Here it is one of the client's two
 * strands, by the trial's clock, and does the same: it goes on while the other works, and stands still when the process
 * is stopped. The other one asks. Nothing here knows a clock or a turn: whoever calls says what time it is and how it
 * waits for a descriptor. */
#ifndef LOCKSTORM_TREE_SESSION_H
#define LOCKSTORM_TREE_SESSION_H

#include "harness/env.h"

struct tree_session;

/* The strand that calls. */
struct tree_caller {
    int64_t (*mono_ns)(void *holder);
    /* Returns when the descriptor can be read (true), or at the stamp (false). */
    bool (*readable)(void *holder, int fd, int64_t deadline_ns);
    void (*sent)(void *holder); /* something may have gone out */
    void *holder;
};

/* Whom the tending strand tells that the session is in another state than before. */
struct tree_listener {
    void (*changed)(void *holder, enum env_session_state state);
    void *holder;
};

/* Begins a session of that timeout; `where` are the servers, "host:port,...". It is SUSPENDED until somebody tends it.
 * Never NULL if the library is there. Freed by tree_session_close, which also ends it at the server if it can. */
struct tree_session *tree_session_open(const char *where, int64_t timeout_ms, const struct tree_caller *caller);
void tree_session_close(struct tree_session *session, const struct tree_caller *caller);

/* Tends it until tree_session_dismiss is called, or the session is LOST. */
void tree_session_tend(struct tree_session *session, const struct tree_caller *caller,
                       const struct tree_listener *listener);
void tree_session_dismiss(struct tree_session *session);

enum env_session_state tree_session_state(struct tree_session *session);
/* Of the session, as the server has granted it; 0 before that. */
int64_t tree_session_timeout_ms(struct tree_session *session);

/* One request, as env_tree describes it. The reply is the session's until the next request or its end. */
struct env_reply tree_session_ask(struct tree_session *session, enum env_tree_verb verb, const char *path,
                                  const struct tree_caller *caller, int64_t deadline_ns);

/* Returns true when a watch has fired, or the state has changed, since this was last true; false at the stamp. */
bool tree_session_await_news(struct tree_session *session, const struct tree_caller *caller, int64_t deadline_ns);

#endif
