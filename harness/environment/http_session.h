/* A session with a node that speaks HTTP with JSON bodies, etcd's gateway, through libcurl. Built without libcurl every
 * request is UNKNOWN; `lockstorm locks` lists such locks as not installed, so none is started. */
#pragma once

#include "harness/environment/env.h"
#include "harness/environment/live_task.h"

struct http_session;

/* `where` is the path of a unix socket. Connects with the first request; NULL: it cannot be had. The caller frees with
 * http_session_close. */
struct http_session *http_session_open(const char *where);
void http_session_close(struct http_session *session);

/* Begins a POST. A request that is not answered yet is given up, and its connection with it. False: it cannot begin. */
bool http_session_begin(struct http_session *session, const char *path, const char *body);

/* Waits for the whole answer and fills *reply, as env_post describes it; what *reply points to is the session's until
 * its next request or its end. False when there was no answer: the session is lost and can only be closed. */
bool http_session_answer(struct http_session *session, const struct live_wait *wait, struct env_reply *reply);

/* The same for the next line of an answer that is a stream. */
bool http_session_line(struct http_session *session, const struct live_wait *wait, struct env_reply *reply);
