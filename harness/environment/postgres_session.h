/* A session with a PostgreSQL server, through libpq. Built without libpq every statement is UNKNOWN; `lockstorm locks`
 * lists such locks as not installed, so none is started. */
#pragma once

#include "harness/environment/env.h"
#include "harness/environment/live_task.h"

struct postgres_session;

/* Connects; `where` is libpq's connection string. NULL when it could not connect in time. The caller frees with
 * postgres_session_close. */
struct postgres_session *postgres_session_open(const char *where, const struct live_wait *wait);
void postgres_session_close(struct postgres_session *session);

/* Runs one statement, as env_query describes it, and fills *reply; what it points to is the session's until its next
 * statement or its end. False when there was no complete answer: the session is lost and can only be closed. */
bool postgres_session_run(struct postgres_session *session, const char *statement, const char *const *parameters,
                          size_t count, const struct live_wait *wait, struct env_reply *reply);
