/* The store: the protected resource (harness/resource/resource.h) as a single-threaded RESP server on a unix socket.
 * The resource is in the store's memory; with --table it is in tables of PostgreSQL, and every connection has a session
 * of its own there.
 *
 * Exit status: 2 bad arguments, or a file or socket cannot be used; 3 the tables cannot be made. */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/process/descriptor_limit.h"
#include "harness/process/zygote_service.h"
#include "harness/resource/store_table.h"

enum { REQUEST_LIMIT = 1 << 20, ERROR_ROOM = 200 };

struct store_connection;

struct store {
    struct resource resource;
    const char *table; /* libpq's connection string; NULL: the resource is in memory */
    struct ev_loop *loop;
    struct store_connection *connections;
    size_t connection_count;
    int pending; /* statements that were sent and not answered */
};

/* What a connection waits for before its next request is served; only with a table. */
enum awaits { NOTHING, ITS_STATEMENT, ALL_STATEMENTS };

struct store_connection {
    ev_io io; /* first */
    struct store *store;
    struct store_connection *previous, *next;
    redisReader *requests;
    struct resource_answers answers;
    size_t pending; /* bytes read since the last complete request */
    bool closing;
    enum awaits awaits;
    ev_io statement_io; /* its session's socket */
    struct table_session *session;
    struct resource_access access; /* of its statement */
    struct resource_result result;
    enum table_state state;
    const char *error;
};

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
    connection->awaits = NOTHING;
    if (connection->state == TABLE_LOST) connection->closing = true; /* unknown here as to the client */
    else if (connection->error) resource_answer(&connection->answers, "-ERR %s\r\n", connection->error);
    else
        resource_conclude(&connection->store->resource, &connection->access, &connection->result, &connection->answers);
}

static void connection_go_on(struct store_connection *connection);

static void answer_all(struct store *store) {
    struct store_connection **answered = calloc(store->connection_count, sizeof *answered), *next;
    size_t count = 0;
    if (!answered) abort();
    for (struct store_connection *each = store->connections; each; each = each->next)
        if (each->awaits == ITS_STATEMENT) answered[count++] = each;
    qsort(answered, count, sizeof *answered, compare_answers);
    for (size_t each = 0; each < count; each++) answer_access(answered[each]);
    for (size_t each = 0; each < count; each++) connection_go_on(answered[each]);
    free(answered);
    for (struct store_connection *each = store->connections; each; each = next) {
        next = each->next;
        if (each->awaits != ALL_STATEMENTS || store->pending > 0) continue;
        each->awaits = NOTHING;
        resource_answer(&each->answers, "+PONG\r\n");
        connection_go_on(each);
    }
}

/* Its statement was answered, or the session is lost. */
static void conclude_statement(struct store_connection *connection, enum table_state state) {
    struct store *store = connection->store;
    ev_io_stop(store->loop, &connection->statement_io);
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
    connection->session = store_session_open(connection->store->table, error, sizeof error);
    if (!connection->session) {
        resource_answer(&connection->answers, "-ERR %s\r\n", error);
        return false;
    }
    ev_io_init(&connection->statement_io, on_statement, table_fd(connection->session), EV_READ);
    connection->statement_io.data = connection;
    return true;
}

/* Carries out connection->access. */
static void access_table(struct store_connection *connection) {
    if (!store_session_begin(connection)) return;
    if (!table_send(connection->session, connection->store->resource.mode, &connection->access)) {
        connection->closing = true;
        return;
    }
    connection->awaits = ITS_STATEMENT;
    connection->store->pending++;
    ev_io_start(connection->store->loop, &connection->statement_io);
}

static void answer_ping(struct store_connection *connection) {
    if (connection->store->pending > 0) connection->awaits = ALL_STATEMENTS;
    else resource_answer(&connection->answers, "+PONG\r\n");
}

/* --- connections --- */

static void store_connection_close(struct store_connection *connection) {
    struct store *store = connection->store;
    store->connection_count--;
    if (connection->previous) connection->previous->next = connection->next;
    else store->connections = connection->next;
    if (connection->next) connection->next->previous = connection->previous;
    ev_io_stop(store->loop, &connection->io);
    store_session_close(connection->session);
    close(connection->io.fd);
    redisReaderFree(connection->requests);
    free(connection->answers.bytes);
    free(connection);
}

/* While a connection waits for a table nothing is read from it: its requests are served one after the other. False: it
 * has to be closed. */
static bool connection_flush(struct store_connection *connection) {
    while (connection->answers.length) {
        ssize_t sent = send(connection->io.fd, connection->answers.bytes, connection->answers.length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) break;
        connection->answers.length -= (size_t)sent;
        memmove(connection->answers.bytes, connection->answers.bytes + sent, connection->answers.length);
    }
    if (connection->answers.length && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    int events = (connection->awaits ? 0 : EV_READ) | (connection->answers.length ? EV_WRITE : 0);
    ev_io_stop(connection->store->loop, &connection->io);
    ev_io_set(&connection->io, connection->io.fd, events);
    if (events) ev_io_start(connection->store->loop, &connection->io);
    return !connection->closing;
}

static void connection_request(struct store_connection *connection, const redisReply *request) {
    switch (resource_serve(&connection->store->resource, request, &connection->answers, &connection->access)) {
    case RESOURCE_ANSWERED: break;
    case RESOURCE_QUIT: connection->closing = true; break;
    case RESOURCE_ACCESS: access_table(connection); break;
    case RESOURCE_PING: answer_ping(connection); break;
    }
}

static void connection_serve(struct store_connection *connection) {
    void *request;
    while (!connection->closing && !connection->awaits &&
           redisReaderGetReply(connection->requests, &request) == REDIS_OK && request) {
        connection->pending = 0;
        connection_request(connection, request);
        freeReplyObject(request);
    }
    if (connection->requests->err || connection->pending > REQUEST_LIMIT) {
        resource_answer(&connection->answers, "-ERR not a RESP request, or longer than 1 MiB\r\n");
        connection->closing = true;
    }
}

/* False: the connection has to be closed. */
static bool connection_read(struct store_connection *connection) {
    char bytes[16384];
    ssize_t got = recv(connection->io.fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0 || redisReaderFeed(connection->requests, bytes, (size_t)got) != REDIS_OK) return false;
    connection->pending += (size_t)got;
    connection_serve(connection);
    return true;
}

/* What the connection waited for has arrived. */
static void connection_go_on(struct store_connection *connection) {
    connection_serve(connection);
    if (!connection_flush(connection)) store_connection_close(connection);
}

static void store_on_event(struct ev_loop *loop, ev_io *io, int events) {
    struct store_connection *connection = (struct store_connection *)io;
    bool open = !(events & EV_READ) || connection_read(connection);
    if (open && connection_flush(connection)) return;
    ev_io_stop(loop, &connection->io);
    connection->closing = true;
    if (connection->awaits != ITS_STATEMENT)
        store_connection_close(connection); /* else when its statement is answered */
}

static void store_on_accept(struct ev_loop *loop, ev_io *io, int events) {
    struct store *store = io->data;
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    (void)events;
    if (fd < 0) return;
    struct store_connection *connection = calloc(1, sizeof *connection);
    if (!connection) abort();
    connection->store = store;
    connection->next = store->connections;
    if (connection->next) connection->next->previous = connection;
    store->connections = connection;
    store->connection_count++;
    connection->requests = redisReaderCreate();
    ev_io_init(&connection->io, store_on_event, fd, EV_READ);
    ev_io_start(loop, &connection->io);
}

/* --- start --- */

/* The socket has another name until it listens: a client that sees its name may connect. */
static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s~", path);
    if (length >= (int)sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 512) < 0) return -1;
    bool named = link(address.sun_path, path) == 0;
    return unlink(address.sun_path) == 0 && named ? fd : -1;
}

struct store_arguments {
    const char *history, *page, *socket, *mode, *table;
    int64_t actor, stranger, counter;
};

/* False: it is not a number of at least `least` and at most `most`. */
static bool number_fits(const char *text, int64_t least, int64_t most, int64_t *number) {
    return resource_number(text, strlen(text), number) && *number >= least && *number <= most;
}

static bool store_parse(int argc, char **argv, struct store_arguments *arguments, struct history_error *error) {
    const struct option options[] = {{"history", required_argument, NULL, 'h'},
                                     {"page", required_argument, NULL, 's'},
                                     {"socket", required_argument, NULL, 'S'},
                                     {"mode", required_argument, NULL, 'm'},
                                     {"actor", required_argument, NULL, 'a'},
                                     {"stranger", required_argument, NULL, 'x'},
                                     {"counter", required_argument, NULL, 'c'},
                                     {"table", required_argument, NULL, 't'},
                                     {0}};
    for (int option, place; (option = getopt_long(argc, argv, "", options, &place)) != -1;) {
        bool fits = true;
        switch (option) {
        case 'h': arguments->history = optarg; break;
        case 's': arguments->page = optarg; break;
        case 'S': arguments->socket = optarg; break;
        case 'm': arguments->mode = optarg; break;
        case 'a': fits = number_fits(optarg, 0, UINT32_MAX, &arguments->actor); break;
        case 'x': fits = number_fits(optarg, 0, UINT32_MAX, &arguments->stranger); break;
        case 'c': fits = number_fits(optarg, INT64_MIN, INT64_MAX, &arguments->counter); break;
        case 't': arguments->table = optarg; break;
        default: return false;
        }
        if (!fits) return history_fail(error, "not a usable number: --%s %.100s", options[place].name, optarg);
    }
    return arguments->history && arguments->page && arguments->socket && arguments->mode && optind == argc;
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
    struct store store = {0};
    struct resource *resource = &store.resource;
    zygote_begin(&argc, &argv);
    descriptor_limit_raise();
    if (store_parse(argc, argv, &arguments, &error) && resource_mode_find(arguments.mode, &resource->mode)) {
        resource->actor.history = history_open(arguments.history, &error);
        resource->actor.page = resource->actor.history ? shared_page_open(arguments.page, &error) : NULL;
    }
    if (!resource->actor.page) {
        fprintf(stderr, "store: %s\n", error.text);
        return 2;
    }
    resource->actor.id = (uint32_t)arguments.actor;
    resource->stranger = (uint32_t)arguments.stranger;
    resource->value[HISTORY_OBJECT_COUNTER] = arguments.counter;
    resource->elsewhere = arguments.table != NULL;
    store.table = arguments.table;
    if (store.table && !table_make(store.table, arguments.counter)) return 3;
    int fd = listen_at(arguments.socket);
    if (fd < 0) {
        fprintf(stderr, "store: %s: %s\n", arguments.socket, strerror(errno));
        return 2;
    }
    store.loop = ev_default_loop(EVFLAG_AUTO);
    ev_io accepting = {0};
    ev_io_init(&accepting, store_on_accept, fd, EV_READ);
    accepting.data = &store;
    ev_io_start(store.loop, &accepting);
    ev_run(store.loop, 0);
    return 0;
}
