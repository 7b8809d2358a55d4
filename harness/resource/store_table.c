#include "harness/resource/store_table.h"

#if LOCKSTORM_POSTGRES

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/history/history.h"

enum { CLAUSE = 64, STATEMENT = 512 };

struct table_session {
    PGconn *link;
    PGresult *result; /* of the last statement */
};

static const char TABLES[] =
    "CREATE TABLE resource (name text PRIMARY KEY, value bigint NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 0,"
    " token bigint NOT NULL DEFAULT 0, owner bigint NOT NULL DEFAULT 0);"
    "CREATE TABLE member (value bigint PRIMARY KEY);"
    "INSERT INTO resource (name, value) VALUES ('register', 0), ('counter', %lld), ('set', 0)";

/* What an access answers about its row: value and version; of the set: size and version. */
#define ANSWER "CASE name WHEN 'set' THEN (SELECT count(*) FROM member) ELSE value END, version"

/* --- statements --- */

/* Which accesses are accepted. PostgreSQL evaluates the WHERE of an UPDATE again when another session has just changed
 * the row. So two writes at once are decided one after the other, the second by what the first has left. */
static void condition_of(enum resource_mode mode, const struct resource_access *access, char clause[CLAUSE]) {
    bool checks_token = mode == RESOURCE_FENCE_READS_AND_WRITES || (mode == RESOURCE_FENCE_WRITES && access->write);
    clause[0] = '\0';
    if (checks_token) snprintf(clause, CLAUSE, " AND token <= %lld", (long long)access->token);
    else if (mode == RESOURCE_COMPARE_OWNER && access->write)
        snprintf(clause, CLAUSE, " AND owner = %lld", (long long)access->grant);
    else if (mode == RESOURCE_COMPARE_AND_SET && access->write && !access->atomic)
        snprintf(clause, CLAUSE, " AND version = %lld", (long long)access->based_on);
}

/* What an access changes in the row besides value and version: "" or ", column = ...". */
static void mark_of(enum resource_mode mode, const struct resource_access *access, char clause[CLAUSE]) {
    bool notes_token = mode == RESOURCE_FENCE_READS_AND_WRITES || (mode == RESOURCE_FENCE_WRITES && access->write);
    clause[0] = '\0';
    if (notes_token) snprintf(clause, CLAUSE, ", token = %lld", (long long)access->token);
    else if (mode == RESOURCE_COMPARE_OWNER && !access->write)
        snprintf(clause, CLAUSE, ", owner = %lld", (long long)access->grant);
}

static void statement_of(enum resource_mode mode, const struct resource_access *access, char statement[STATEMENT]) {
    char condition[CLAUSE], mark[CLAUSE];
    const char *name = history_object_name(access->object);
    long long value = access->value;
    condition_of(mode, access, condition);
    mark_of(mode, access, mark);
    if (!access->write && !mark[0])
        snprintf(statement, STATEMENT, "SELECT " ANSWER " FROM resource WHERE name = '%s'", name);
    else if (!access->write)
        snprintf(statement, STATEMENT, "UPDATE resource SET %s WHERE name = '%s'%s RETURNING " ANSWER, mark + 2, name,
                 condition);
    else if (access->object == HISTORY_OBJECT_SET)
        snprintf(
            statement, STATEMENT,
            "WITH admitted AS (UPDATE resource SET version = version + 1%s WHERE name = '%s'%s RETURNING version), "
            "added AS (INSERT INTO member SELECT %lld FROM admitted ON CONFLICT DO NOTHING RETURNING value) "
            "SELECT (SELECT count(*) FROM added), version FROM admitted",
            mark, name, condition, value);
    else
        snprintf(statement, STATEMENT,
                 "UPDATE resource SET value = %s%lld, version = version + 1%s WHERE name = '%s'%s RETURNING value, "
                 "version",
                 access->atomic ? "value + " : "", value, mark, name, condition);
}

/* --- sessions --- */

static void fill_error(char *error, int size, const char *said) {
    snprintf(error, (size_t)size, "%.*s", (int)strcspn(said, "\n"), said);
}

struct table_session *store_session_open(const char *where, char *error, int size) {
    struct table_session *session = calloc(1, sizeof *session);
    if (!session) abort();
    session->link = PQconnectdb(where);
    if (PQstatus(session->link) == CONNECTION_OK) return session;
    fill_error(error, size, PQerrorMessage(session->link));
    store_session_close(session);
    return NULL;
}

void store_session_close(struct table_session *session) {
    if (!session) return;
    PQclear(session->result);
    PQfinish(session->link);
    free(session);
}

bool table_create(struct table_session *session, int64_t counter, char *error, int size) {
    char statement[sizeof TABLES + 32];
    snprintf(statement, sizeof statement, TABLES, (long long)counter);
    PGresult *result = PQexec(session->link, statement);
    bool made = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!made) fill_error(error, size, PQresultErrorMessage(result));
    PQclear(result);
    return made;
}

bool table_send(struct table_session *session, enum resource_mode mode, const struct resource_access *access) {
    char statement[STATEMENT];
    statement_of(mode, access, statement);
    PQclear(session->result);
    session->result = NULL;
    return PQsendQuery(session->link, statement) == 1;
}

int table_fd(const struct table_session *session) {
    return PQsocket(session->link);
}

static int64_t store_number_at(const PGresult *result, int column) {
    return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

/* No row: the access was refused. */
static enum table_state read_result(struct table_session *session, struct resource_result *result, const char **error) {
    *error = NULL;
    if (PQresultStatus(session->result) == PGRES_TUPLES_OK) {
        *result = (struct resource_result){.refused = PQntuples(session->result) == 0, .version = -1};
        if (result->refused) return TABLE_ANSWERED;
        result->value = store_number_at(session->result, 0);
        result->version = store_number_at(session->result, 1);
        return TABLE_ANSWERED;
    }
    *error = PQresultErrorField(session->result, PG_DIAG_MESSAGE_PRIMARY);
    return PQstatus(session->link) == CONNECTION_OK && *error ? TABLE_ANSWERED : TABLE_LOST;
}

enum table_state table_poll(struct table_session *session, struct resource_result *result, const char **error) {
    if (!PQconsumeInput(session->link)) return TABLE_LOST;
    while (!PQisBusy(session->link)) {
        PGresult *next = PQgetResult(session->link);
        if (!next) return session->result ? read_result(session, result, error) : TABLE_LOST;
        PQclear(session->result);
        session->result = next;
    }
    return TABLE_PENDING;
}

#else /* without the library there is no session, and no parameter counts */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include <stdio.h>

struct table_session *store_session_open(const char *where, char *error, int size) {
    snprintf(error, (size_t)size, "built without libpq");
    return NULL;
}

void store_session_close(struct table_session *session) {
}

bool table_create(struct table_session *session, int64_t counter, char *error, int size) {
    return false;
}

bool table_send(struct table_session *session, enum resource_mode mode, const struct resource_access *access) {
    return false;
}

int table_fd(const struct table_session *session) {
    return -1;
}

enum table_state table_poll(struct table_session *session, struct resource_result *result, const char **error) {
    return TABLE_LOST;
}

#endif
