/* The store: the protected resource (harness/resource/resource.h) as a single-threaded RESP server on a unix socket.
 * The resource is in the store's memory; with --table it is in tables of PostgreSQL, and every connection has a session
 * of its own there.
 *
 * Exit status: 2 bad arguments, or a file or socket cannot be used; 3 the tables cannot be made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/process/arguments.h"
#include "harness/process/descriptor_limit.h"
#include "harness/process/zygote_service.h"
#include "harness/resource/store_table.h"
#include "harness/resp_service/resp_service.h"

enum { ERROR_ROOM = 200 };

struct store {
    struct resp_service service; /* first */
    struct resource resource;
    const char *table; /* libpq's connection string; NULL: the resource is in memory */
    int pending;       /* statements that were sent and not answered */
};

/* What a connection waits for before its next request is served; only with a table. */
enum awaits { NOTHING, ITS_STATEMENT, ALL_STATEMENTS };

struct store_connection {
    struct resp_caller base; /* first */
    enum awaits awaits;
    ev_io statement_io; /* its session's socket */
    struct table_session *session;
    struct resource_access access; /* of its statement */
    struct resource_result result;
    enum table_state state;
    const char *error;
};

static struct store *store_of(const struct store_connection *connection) {
    return (struct store *)connection->base.service;
}

static void set_awaits(struct store_connection *connection, enum awaits awaits) {
    connection->awaits = awaits;
    connection->base.waits = awaits != NOTHING;
}

/* --- a table's answers --- */

/* Answers of several sessions may arrive in another order than their statements were committed. So none is passed on
 * before all pending statements are answered; then they go in the order of versions, a read of a version behind the
 * write that made it. A connection that waits sends nothing new, so this takes no longer than the statements. */
static int compare_answers(const void *one, const void *other) {
    const struct store_connection *a = *(struct store_connection *const *)one,
                                  *b = *(struct store_connection *const *)other;
    if (a->access.object != b->access.object) return a->access.object < b->access.object ? -1 : 1;
    if (a->result.refused != b->result.refused) return a->result.refused ? 1 : -1;
    if (a->result.version != b->result.version) return a->result.version < b->result.version ? -1 : 1;
    return (int)b->access.write - (int)a->access.write;
}

static void answer_access(struct store_connection *connection) {
    struct reply_text *reply = &connection->base.reply;
    set_awaits(connection, NOTHING);
    if (connection->state == TABLE_LOST) connection->base.closing = true; /* unknown here as to the client */
    else if (connection->error) reply_write(reply, "-ERR %s\r\n", connection->error);
    else resource_conclude(&store_of(connection)->resource, &connection->access, &connection->result, reply);
}

static void answer_all(struct store *store) {
    struct resp_caller *next;
    size_t count = 0;
    for (struct resp_caller *each = store->service.callers; each; each = each->next) count++;
    struct store_connection **answered = calloc(count, sizeof *answered);
    if (!answered) abort();
    count = 0;
    for (struct resp_caller *each = store->service.callers; each; each = each->next) {
        struct store_connection *connection = (struct store_connection *)each;
        if (connection->awaits == ITS_STATEMENT) answered[count++] = connection;
    }
    qsort(answered, count, sizeof *answered, compare_answers);
    for (size_t each = 0; each < count; each++) answer_access(answered[each]);
    for (size_t each = 0; each < count; each++) resp_caller_go_on(&answered[each]->base);
    free(answered);
    for (struct resp_caller *each = store->service.callers; each; each = next) {
        struct store_connection *connection = (struct store_connection *)each;
        next = each->next;
        if (connection->awaits != ALL_STATEMENTS || store->pending > 0) continue;
        set_awaits(connection, NOTHING);
        reply_write(&each->reply, "+PONG\r\n");
        resp_caller_go_on(each);
    }
}

/* Its statement was answered, or the session is lost. */
static void conclude_statement(struct store_connection *connection, enum table_state state) {
    struct store *store = store_of(connection);
    ev_io_stop(store->service.loop, &connection->statement_io);
    connection->state = state;
    store->pending--;
    if (store->pending == 0) answer_all(store);
}

static void on_statement(struct ev_loop *loop, ev_io *io, int events) {
    struct store_connection *connection = io->data;
    (void)loop, (void)events;
    enum table_state state = table_poll(connection->session, &connection->result, &connection->error);
    if (state != TABLE_PENDING) conclude_statement(connection, state);
}

/* A connection's session begins with its first access. */
static bool store_session_begin(struct store_connection *connection) {
    char error[ERROR_ROOM];
    if (connection->session) return true;
    connection->session = store_session_open(store_of(connection)->table, error, sizeof error);
    if (!connection->session) {
        reply_write(&connection->base.reply, "-ERR %s\r\n", error);
        return false;
    }
    ev_io_init(&connection->statement_io, on_statement, table_fd(connection->session), EV_READ);
    connection->statement_io.data = connection;
    return true;
}

/* Carries out connection->access. */
static void access_table(struct store_connection *connection) {
    if (!store_session_begin(connection)) return;
    if (!table_send(connection->session, store_of(connection)->resource.mode, &connection->access)) {
        connection->base.closing = true;
        return;
    }
    set_awaits(connection, ITS_STATEMENT);
    store_of(connection)->pending++;
    ev_io_start(store_of(connection)->service.loop, &connection->statement_io);
}

/* --- connections --- */

static void store_serve(struct resp_caller *caller, const redisReply *request) {
    struct store_connection *connection = (struct store_connection *)caller;
    struct store *store = store_of(connection);
    switch (resource_serve(&store->resource, request, &caller->reply, &connection->access)) {
    case RESOURCE_ANSWERED: break;
    case RESOURCE_QUIT: caller->closing = true; break;
    case RESOURCE_ACCESS: access_table(connection); break;
    case RESOURCE_PING:
        if (store->pending > 0) set_awaits(connection, ALL_STATEMENTS);
        else reply_write(&caller->reply, "+PONG\r\n");
        break;
    }
}

/* A connection stays until its statement is answered. */
static bool store_end(struct resp_caller *caller) {
    struct store_connection *connection = (struct store_connection *)caller;
    if (connection->awaits == ITS_STATEMENT) return false;
    store_session_close(connection->session);
    return true;
}

/* --- start --- */

struct store_arguments {
    const char *history, *page, *socket, *mode, *table;
    int64_t actor, stranger, counter;
};

static bool store_parse(int argc, char **argv, struct store_arguments *arguments, struct history_error *error) {
    const struct argument table[] = {TEXT_ARGUMENT("history", &arguments->history),
                                     TEXT_ARGUMENT("page", &arguments->page),
                                     TEXT_ARGUMENT("socket", &arguments->socket),
                                     TEXT_ARGUMENT("mode", &arguments->mode),
                                     NUMBER_BETWEEN("actor", &arguments->actor, 0, UINT32_MAX),
                                     NUMBER_BETWEEN("stranger", &arguments->stranger, 0, UINT32_MAX),
                                     NUMBER_ARGUMENT("counter", &arguments->counter),
                                     TEXT_ARGUMENT("table", &arguments->table),
                                     {0}};
    struct argument_refused refused;
    bool read = arguments_read(argc, argv, table, &refused);
    if (refused.name) history_fail(error, "not a usable number: --%s %.100s", refused.name, refused.value);
    return read && arguments->history && arguments->page && arguments->socket && arguments->mode;
}

static bool table_make(const char *where, int64_t counter) {
    char error[ERROR_ROOM];
    struct table_session *session = store_session_open(where, error, sizeof error);
    bool made = session && table_create(session, counter, error, sizeof error);
    if (!made) fprintf(stderr, "store: %s\n", error);
    store_session_close(session);
    return made;
}

int main(int argc, char **argv) {
    struct store_arguments arguments = {0};
    struct history_error error = {.text = "usage: store --history F --page F --socket S --mode M --actor N"};
    struct address_error unusable;
    struct store store = {0};
    struct resource *resource = &store.resource;
    zygote_begin(&argc, &argv);
    descriptor_limit_raise();
    if (store_parse(argc, argv, &arguments, &error) && resource_mode_find(arguments.mode, &resource->mode))
        actor_open(&resource->actor, (uint32_t)arguments.actor, arguments.history, arguments.page, &error);
    if (!resource->actor.page) {
        fprintf(stderr, "store: %s\n", error.text);
        return 2;
    }
    resource->stranger = (uint32_t)arguments.stranger;
    resource->value[HISTORY_OBJECT_COUNTER] = arguments.counter;
    resource->elsewhere = arguments.table != NULL;
    store.table = arguments.table;
    if (store.table && !table_make(store.table, arguments.counter)) return 3;
    store.service = (struct resp_service){.loop = ev_default_loop(EVFLAG_AUTO),
                                          .caller_size = sizeof(struct store_connection),
                                          .serve = store_serve,
                                          .end = store_end};
    if (!resp_service_open(&store.service, arguments.socket, &unusable)) {
        fprintf(stderr, "store: %s\n", unusable.text);
        return 2;
    }
    ev_run(store.service.loop, 0);
    return 0;
}
