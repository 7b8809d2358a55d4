#include "harness/environment/postgres_session.h"

#if LOCKSTORM_POSTGRES

#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct postgres_session {
    PGconn *link;
    PGresult *result;        /* of the last statement; the reply's texts are in it */
    struct env_reply *items; /* the reply's rows, then all their columns */
    char error[256];
};

/* Notices such as "you do not own this lock" do not belong in the client's log: the caller gets the result. */
static void ignore_notice(void *argument, const char *notice) {
    (void)argument, (void)notice;
}

/* A unix socket usually takes a short statement at once; if not, it will in a moment. */
static void await_writable(int fd) {
    poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
}

static bool await_connection(PGconn *link, const struct live_wait *wait) {
    if (PQstatus(link) == CONNECTION_BAD) return false;
    for (;;) {
        await_writable(PQsocket(link)); /* as libpq's documentation asks for before the first poll */
        PostgresPollingStatusType state = PQconnectPoll(link);
        while (state == PGRES_POLLING_READING) {
            if (!live_wait_readable(wait, PQsocket(link))) return false;
            state = PQconnectPoll(link);
        }
        if (state != PGRES_POLLING_WRITING) return state == PGRES_POLLING_OK;
    }
}

struct postgres_session *postgres_session_open(const char *where, const struct live_wait *wait) {
    PGconn *link = PQconnectStart(where);
    if (!link) abort();
    PQsetNoticeProcessor(link, ignore_notice, NULL);
    if (!await_connection(link, wait) || PQsetnonblocking(link, 1) != 0) {
        PQfinish(link);
        return NULL;
    }
    struct postgres_session *session = calloc(1, sizeof *session);
    if (!session) abort();
    session->link = link;
    return session;
}

static void postgres_answer_drop(struct postgres_session *session) {
    PQclear(session->result);
    free(session->items);
    session->result = NULL;
    session->items = NULL;
}

void postgres_session_close(struct postgres_session *session) {
    if (!session) return;
    postgres_answer_drop(session);
    PQfinish(session->link);
    free(session);
}

/* --- replies --- */

static struct env_reply column_of(const PGresult *result, int row, int column) {
    if (PQgetisnull(result, row, column)) return (struct env_reply){.kind = ENV_REPLY_NIL};
    return (struct env_reply){.kind = ENV_REPLY_STRING,
                              .text = PQgetvalue(result, row, column),
                              .length = (size_t)PQgetlength(result, row, column)};
}

static struct env_reply rows_of(struct postgres_session *session) {
    size_t rows = (size_t)PQntuples(session->result), columns = (size_t)PQnfields(session->result);
    session->items = calloc(rows * (columns + 1) + 1, sizeof *session->items);
    if (!session->items) abort();
    for (size_t row = 0; row < rows; row++) {
        struct env_reply *values = session->items + rows + row * columns;
        session->items[row] = (struct env_reply){.kind = ENV_REPLY_ARRAY, .items = values, .count = columns};
        for (size_t column = 0; column < columns; column++)
            values[column] = column_of(session->result, (int)row, (int)column);
    }
    return (struct env_reply){.kind = ENV_REPLY_ARRAY, .items = session->items, .count = rows};
}

static struct env_reply error_of(struct postgres_session *session) {
    const char *state = PQresultErrorField(session->result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(session->result, PG_DIAG_MESSAGE_PRIMARY);
    snprintf(session->error, sizeof session->error, "%s %s", state ? state : "XX000", message ? message : "");
    return (struct env_reply){.kind = ENV_REPLY_ERROR, .text = session->error, .length = strlen(session->error)};
}

/* False when the session has ended: it is unknown whether the statement was run. */
static bool answer_fill(struct postgres_session *session, struct env_reply *reply) {
    switch (PQresultStatus(session->result)) {
    case PGRES_TUPLES_OK: *reply = rows_of(session); return true;
    case PGRES_COMMAND_OK:
        *reply = (struct env_reply){.kind = ENV_REPLY_STATUS, .text = PQcmdStatus(session->result)};
        reply->length = strlen(reply->text);
        return true;
    default: *reply = error_of(session); return PQstatus(session->link) == CONNECTION_OK;
    }
}

/* --- statements --- */

static bool postgres_send_all(PGconn *link) {
    int left;
    while ((left = PQflush(link)) > 0) {
        await_writable(PQsocket(link));
        if (!PQconsumeInput(link)) return false; /* else both sides could wait for each other */
    }
    return left == 0;
}

/* The next result in *result, NULL after the last one; false: none came in time. */
static bool next_result(PGconn *link, const struct live_wait *wait, PGresult **result) {
    while (PQisBusy(link))
        if (!live_wait_readable(wait, PQsocket(link)) || !PQconsumeInput(link)) return false;
    *result = PQgetResult(link);
    return true;
}

bool postgres_session_run(struct postgres_session *session, const char *statement, const char *const *parameters,
                          size_t count, const struct live_wait *wait, struct env_reply *reply) {
    PGresult *rest = NULL;
    postgres_answer_drop(session);
    if (!PQsendQueryParams(session->link, statement, (int)count, NULL, parameters, NULL, NULL, 0)) return false;
    if (!postgres_send_all(session->link) || !next_result(session->link, wait, &session->result)) return false;
    if (!session->result || !answer_fill(session, reply)) return false;
    while (next_result(session->link, wait, &rest)) {
        if (!rest) return true;
        PQclear(rest);
    }
    return false;
}

#else /* without the library there is no session, and no parameter counts */
#pragma GCC diagnostic ignored "-Wunused-parameter"

SESSION_ABSENT(struct postgres_session *, postgres_session_open, (const char *where, const struct live_wait *wait),
               NULL)
SESSION_ABSENT(void, postgres_session_close, (struct postgres_session * session), )
SESSION_ABSENT(bool, postgres_session_run,
               (struct postgres_session * session, const char *statement, const char *const *parameters, size_t count,
                const struct live_wait *wait, struct env_reply *reply),
               false)

#endif
