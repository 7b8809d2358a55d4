/* A session with a node that speaks SQL: PostgreSQL's, through libpq. Built without libpq there is no session: every
 * statement is UNKNOWN; `lockstorm locks` knows that, and nothing is started.
 *
 * Nothing here knows a clock or a turn: whoever has a session says how it waits for a socket. */
#ifndef LOCKSTORM_SQL_SESSION_H
#define LOCKSTORM_SQL_SESSION_H

#include "harness/env.h"

struct sql_session;

struct sql_wait {
    bool (*readable)(void *holder, int fd); /* returns when the socket can be read (true), or nobody waits any more */
    void *holder;
};

/* Connects; `where` is libpq's connection string. NULL when that did not come to an end. The caller frees with
 * sql_session_close. */
struct sql_session *sql_session_open(const char *where, const struct sql_wait *wait);
void sql_session_close(struct sql_session *session);

/* Runs one statement, as env_query describes it, and fills *reply, which stays the session's until its next statement
 * or its end. False when there was no whole answer: the session is lost then, and is only good for being closed. */
bool sql_session_run(struct sql_session *session, const char *statement, const char *const *parameters, size_t count,
                     const struct sql_wait *wait, struct env_reply *reply);

#endif
