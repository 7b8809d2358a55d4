/* The resource as a table of PostgreSQL with a version column: one row for each object, one statement for each access.
 * The row's own columns decide which accesses are accepted, and the condition is part of the statement that writes, so
 * nothing can happen between check and write. Each row has its own newest token and owner; everything else is as in the
 * store's memory.
 *
 * A session carries out one statement at a time. Built without libpq, store_session_open always fails. */
#pragma once

#include "harness/resource/resource.h"

struct table_session;

enum table_state {
    TABLE_LOST = 0, /* it is unknown whether the statement was carried out; the session can only be closed */
    TABLE_PENDING,  /* not answered yet */
    TABLE_ANSWERED, /* *result; or *error: the server has not carried it out */
};

/* Connects; `where` is libpq's connection string. NULL with a reason in *error, which holds `size` bytes. The caller
 * frees with store_session_close. */
struct table_session *store_session_open(const char *where, char *error, int size);
void store_session_close(struct table_session *session);

/* Makes the tables; the counter begins with this value. False with a reason in *error. */
bool table_create(struct table_session *session, int64_t counter, char *error, int size);

/* Sends the statement; the one before must be answered. False: the session is lost. */
bool table_send(struct table_session *session, enum resource_mode mode, const struct resource_access *access);

/* The socket that becomes readable when something of an answer arrives. */
int table_fd(const struct table_session *session);
/* Reads what has arrived. *error is the session's until its next statement; NULL: there is a result. */
enum table_state table_poll(struct table_session *session, struct resource_result *result, const char **error);
