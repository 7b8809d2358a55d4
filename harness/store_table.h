/* The resource as a table of PostgreSQL with a version column: a row an object, and a statement an access. The row's
 * own columns say who is let in, and the condition stands in the statement that writes: there is nothing between check
 * and write. Tokens and owners are the row's; everything else is as in the store's memory.
 *
 * A session carries out one statement at a time. Built without libpq there is none. */
#ifndef LOCKSTORM_STORE_TABLE_H
#define LOCKSTORM_STORE_TABLE_H

#include "harness/resource.h"

struct table_session;

enum table_state {
    TABLE_LOST = 0, /* nobody knows whether it was carried out; the session is only good for being closed */
    TABLE_ASKED,    /* not answered yet */
    TABLE_TOLD,     /* *result, or *error if the server could not carry it out and has not */
};

/* Connects; `where` is libpq's connection string. NULL with a reason in *error, which holds `size` bytes. The caller
 * frees with table_close. */
struct table_session *table_open(const char *where, char *error, int size);
void table_close(struct table_session *session);

/* Makes the tables, with this counter. False with a reason in *error. */
bool table_create(struct table_session *session, int64_t counter, char *error, int size);

/* Sends the statement. Only when the one before was told. False: the session is lost. */
bool table_ask(struct table_session *session, enum resource_mode mode, const struct resource_access *access);

/* What becomes readable when there is something to be learned, and what that is. *error is owned by the session until
 * its next statement; NULL: there is a result. */
int table_fd(const struct table_session *session);
enum table_state table_look(struct table_session *session, struct resource_result *result, const char **error);

#endif
