/* A session with a node that speaks HTTP with JSON in it: etcd's gateway, through libcurl. Built without libcurl there
 * is no session: every request is UNKNOWN; `lockstorm locks` knows that, and nothing is started.
 *
 * Nothing here knows a clock or a turn: whoever has a session says how it waits for a socket. */
#ifndef LOCKSTORM_HTTP_SESSION_H
#define LOCKSTORM_HTTP_SESSION_H

#include "harness/env.h"

struct http_session;

struct http_wait {
    bool (*readable)(void *holder, int fd); /* returns when the socket can be read (true), or nobody waits any more */
    void *holder;
};

/* `where` is the path of a unix socket. Connects with the first request; NULL: it cannot be had. The caller frees with
 * http_session_close. */
struct http_session *http_session_open(const char *where);
void http_session_close(struct http_session *session);

/* Begins a POST. What is left of the one before is given up, and its connection with it. */
bool http_session_begin(struct http_session *session, const char *path, const char *body);

/* Waits for the whole answer and fills *reply, as env_post describes it; it stays the session's until its next request
 * or its end. False when there was none: the session is lost then, and is only good for being closed. */
bool http_session_answer(struct http_session *session, const struct http_wait *wait, struct env_reply *reply);

/* The same for the next line of an answer that goes on. */
bool http_session_line(struct http_session *session, const struct http_wait *wait, struct env_reply *reply);

#endif
