/* The store: the protected resource (harness/resource.h) as a single-threaded RESP server on a unix socket. The
 * resource is in its memory, or with --table in a table of PostgreSQL, where every connection has a session of its own.
 */
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

#include "harness/store_table.h"

enum { REQUEST_LIMIT = 1 << 20, ERROR_ROOM = 200 };

struct connection;

struct store {
    struct resource resource;
    const char *table; /* how libpq finds it; NULL: the resource is here */
    struct ev_loop *loop;
    struct connection *connections;
    size_t connection_count;
    int asked; /* how many statements are on their way */
};

/* What a connection waits for before its next request is served; only with a table. */
enum awaits { NOTHING, ITS_STATEMENT, ALL_STATEMENTS };

struct connection {
    ev_io io; /* first */
    struct store *store;
    struct connection *previous, *next;
    redisReader *requests;
    struct resource_answers answers;
    size_t pending; /* bytes read since the last whole request */
    bool closing;
    enum awaits awaits;
    ev_io told; /* its session's */
    struct table_session *session;
    struct resource_access access; /* that its statement is for */
    struct resource_result result;
    enum table_state state;
    const char *error;
};

/* --- a table's answers --- */

/* Commits of several sessions may come to be told in another order than they were made. So nothing is told before all
 * that is under way can be, and then in the order of versions, what was read of one behind what wrote it. Whoever waits
 * here asks nothing new, so all are told soon. */
static int compare_told(const void *one, const void *other) {
    const struct connection *a = *(struct connection *const *)one, *b = *(struct connection *const *)other;
    if (a->access.object != b->access.object) return a->access.object < b->access.object ? -1 : 1;
    if (a->result.refused != b->result.refused) return a->result.refused ? 1 : -1;
    if (a->result.version != b->result.version) return a->result.version < b->result.version ? -1 : 1;
    return (int)b->access.write - (int)a->access.write;
}

static void tell(struct connection *connection) {
    connection->awaits = NOTHING;
    if (connection->state == TABLE_LOST) connection->closing = true; /* whoever asked knows as much as we do */
    else if (connection->error) resource_answer(&connection->answers, "-ERR %s\r\n", connection->error);
    else
        resource_conclude(&connection->store->resource, &connection->access, &connection->result, &connection->answers);
}

static void connection_go_on(struct connection *connection);

static void tell_all(struct store *store) {
    struct connection **told = calloc(store->connection_count, sizeof *told), *next;
    size_t count = 0;
    if (!told) abort();
    for (struct connection *each = store->connections; each; each = each->next)
        if (each->awaits == ITS_STATEMENT) told[count++] = each;
    qsort(told, count, sizeof *told, compare_told);
    for (size_t each = 0; each < count; each++) tell(told[each]);
    for (size_t each = 0; each < count; each++) connection_go_on(told[each]);
    free(told);
    for (struct connection *each = store->connections; each; each = next) {
        next = each->next;
        if (each->awaits != ALL_STATEMENTS || store->asked > 0) continue;
        each->awaits = NOTHING;
        resource_answer(&each->answers, "+PONG\r\n");
        connection_go_on(each);
    }
}

/* Its statement has an answer, or will have none. */
static void conclude_statement(struct connection *connection, enum table_state state) {
    struct store *store = connection->store;
    ev_io_stop(store->loop, &connection->told);
    connection->state = state;
    store->asked--;
    if (store->asked == 0) tell_all(store);
}

static void on_told(struct ev_loop *loop, ev_io *io, int events) {
    struct connection *connection = io->data;
    (void)loop, (void)events;
    enum table_state state = table_look(connection->session, &connection->result, &connection->error);
    if (state != TABLE_ASKED) conclude_statement(connection, state);
}

/* Its session begins with its first access. */
static bool session_begin(struct connection *connection) {
    char error[ERROR_ROOM];
    if (connection->session) return true;
    connection->session = table_open(connection->store->table, error, sizeof error);
    if (!connection->session) return resource_answer(&connection->answers, "-ERR %s\r\n", error), false;
    ev_io_init(&connection->told, on_told, table_fd(connection->session), EV_READ);
    connection->told.data = connection;
    return true;
}

/* connection->access is to be carried out. */
static void access_table(struct connection *connection) {
    if (!session_begin(connection)) return;
    if (!table_ask(connection->session, connection->store->resource.mode, &connection->access)) {
        connection->closing = true;
        return;
    }
    connection->awaits = ITS_STATEMENT;
    connection->store->asked++;
    ev_io_start(connection->store->loop, &connection->told);
}

static void answer_ping(struct connection *connection) {
    if (connection->store->asked > 0) connection->awaits = ALL_STATEMENTS;
    else resource_answer(&connection->answers, "+PONG\r\n");
}

/* --- connections --- */

static void connection_close(struct connection *connection) {
    struct store *store = connection->store;
    store->connection_count--;
    if (connection->previous) connection->previous->next = connection->next;
    else store->connections = connection->next;
    if (connection->next) connection->next->previous = connection->previous;
    ev_io_stop(store->loop, &connection->io);
    table_close(connection->session);
    close(connection->io.fd);
    redisReaderFree(connection->requests);
    free(connection->answers.bytes);
    free(connection);
}

/* While it waits for a table nothing is read from it: its requests are served one after the other. */
static bool connection_flush(struct connection *connection) {
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

static void connection_request(struct connection *connection, const redisReply *request) {
    switch (resource_serve(&connection->store->resource, request, &connection->answers, &connection->access)) {
    case RESOURCE_ANSWERED: break;
    case RESOURCE_QUIT: connection->closing = true; break;
    case RESOURCE_ACCESS: access_table(connection); break;
    case RESOURCE_PING: answer_ping(connection); break;
    }
}

static void connection_serve(struct connection *connection) {
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

/* False: the connection is to be closed. */
static bool connection_read(struct connection *connection) {
    char bytes[16384];
    ssize_t got = recv(connection->io.fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0 || redisReaderFeed(connection->requests, bytes, (size_t)got) != REDIS_OK) return false;
    connection->pending += (size_t)got;
    connection_serve(connection);
    return true;
}

/* What it waited for is there. */
static void connection_go_on(struct connection *connection) {
    connection_serve(connection);
    if (!connection_flush(connection)) connection_close(connection);
}

static void on_event(struct ev_loop *loop, ev_io *io, int events) {
    struct connection *connection = (struct connection *)io;
    bool open = !(events & EV_READ) || connection_read(connection);
    if (open && connection_flush(connection)) return;
    ev_io_stop(loop, &connection->io);
    connection->closing = true;
    if (connection->awaits != ITS_STATEMENT) connection_close(connection); /* else when that has been told */
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events) {
    struct store *store = io->data;
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    (void)events;
    if (fd < 0) return;
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) abort();
    connection->store = store;
    connection->next = store->connections;
    if (connection->next) connection->next->previous = connection;
    store->connections = connection;
    store->connection_count++;
    connection->requests = redisReaderCreate();
    ev_io_init(&connection->io, on_event, fd, EV_READ);
    ev_io_start(loop, &connection->io);
}

/* --- start --- */

/* Under another name until it listens: whoever sees the name may connect. */
static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s~", path);
    if (length >= (int)sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 512) < 0) return -1;
    bool named = link(address.sun_path, path) == 0;
    return unlink(address.sun_path) == 0 && named ? fd : -1;
}

struct arguments {
    const char *history, *stage, *socket, *mode, *table;
    long long actor, stranger, counter;
};

static bool parse(int argc, char **argv, struct arguments *arguments) {
    const struct option options[] = {{"history", required_argument, NULL, 'h'},
                                     {"stage", required_argument, NULL, 's'},
                                     {"socket", required_argument, NULL, 'S'},
                                     {"mode", required_argument, NULL, 'm'},
                                     {"actor", required_argument, NULL, 'a'},
                                     {"stranger", required_argument, NULL, 'x'},
                                     {"counter", required_argument, NULL, 'c'},
                                     {"table", required_argument, NULL, 't'},
                                     {0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'h': arguments->history = optarg; break;
        case 's': arguments->stage = optarg; break;
        case 'S': arguments->socket = optarg; break;
        case 'm': arguments->mode = optarg; break;
        case 'a': arguments->actor = atoll(optarg); break;
        case 'x': arguments->stranger = atoll(optarg); break;
        case 'c': arguments->counter = atoll(optarg); break;
        case 't': arguments->table = optarg; break;
        default: return false;
        }
    }
    return arguments->history && arguments->stage && arguments->socket && arguments->mode && optind == argc;
}

static bool table_make(const char *where, int64_t counter) {
    char error[ERROR_ROOM];
    struct table_session *session = table_open(where, error, sizeof error);
    bool made = session && table_create(session, counter, error, sizeof error);
    if (!made) fprintf(stderr, "store: %s\n", error);
    table_close(session);
    return made;
}

int main(int argc, char **argv) {
    struct arguments arguments = {0};
    struct history_error error = {.text = "usage: store --history F --stage F --socket S --mode M --actor N"};
    struct store store = {0};
    struct resource *resource = &store.resource;
    if (parse(argc, argv, &arguments) && resource_mode_find(arguments.mode, &resource->mode)) {
        resource->actor.history = history_open(arguments.history, &error);
        resource->actor.stage = resource->actor.history ? stage_open(arguments.stage, &error) : NULL;
    }
    if (!resource->actor.stage) return fprintf(stderr, "store: %s\n", error.text), 2;
    resource->actor.id = (uint32_t)arguments.actor;
    resource->stranger = (uint32_t)arguments.stranger;
    resource->value[HISTORY_OBJECT_COUNTER] = arguments.counter;
    resource->elsewhere = arguments.table != NULL;
    store.table = arguments.table;
    if (store.table && !table_make(store.table, arguments.counter)) return 3;
    int fd = listen_at(arguments.socket);
    if (fd < 0) return fprintf(stderr, "store: %s: %s\n", arguments.socket, strerror(errno)), 2;
    store.loop = ev_default_loop(EVFLAG_AUTO);
    ev_io accepting = {0};
    ev_io_init(&accepting, on_accept, fd, EV_READ);
    accepting.data = &store;
    ev_io_start(store.loop, &accepting);
    ev_run(store.loop, 0);
    return 0;
}
