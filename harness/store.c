/* The store: the resource that the lock protects. A single-threaded RESP server on a unix socket with a register, a
 * counter and a set - in its memory, or with --table in a table of PostgreSQL, where every connection has a session of
 * its own. It records every access in the history and, by its mode, refuses accesses with an old token:
 *
 *   open                     accepts everything
 *   fence-writes             refuses a write whose token is older than the newest *written* with
 *   fence-reads-and-writes   a token also counts when it reads: refuses any access older than the newest *seen*
 *   compare-owner            a read leaves its grant as a mark: refuses a write under any other grant
 *   compare-and-set          refuses a write that was not computed from the newest version; needs no token
 *
 * The fencing modes are Kleppmann 2016, "Making the lock safe with fencing"; that a check on writes only still loses an
 * update is Junqueira 2015, "Note on fencing and distributed locks". That tokens need no order where the resource can
 * compare and set is antirez 2016, "Is Redlock safe?"; a version column is what most databases offer for it. A mode
 * that checks tokens refuses an access without one. ADD is computed by the store: it is never refused for its version.
 *
 *   GET register|counter|set [options]       -> [value, version]; of the set: [size, version]
 *   SET register|counter value [options]     -> [value, version]
 *   ADD counter|set value [options]          -> [value, version]; of the set: [1 new or 0 was there, version]
 *   MEMBERS   MODE   PING   QUIT
 *   options: TOKEN t   VERSION v (that the value was computed from)   ACTOR a   OP n   GRANT g (for the history)
 *
 * A version counts the accepted writes of its object. Values are 64-bit integers. Whoever gives no ACTOR is recorded as
 * a stranger: somebody at redis-cli. */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <getopt.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/actor.h"
#include "harness/store_table.h"

static const char *const MODES[STORE_MODE_COUNT] = {"open", "fence-writes", "fence-reads-and-writes", "compare-owner",
                                                    "compare-and-set"};

enum { REQUEST_LIMIT = 1 << 20, ERROR_ROOM = 200 };

struct connection;

struct store {
    struct actor actor;
    enum store_mode mode;
    const char *table; /* how libpq finds it; NULL: the resource is here */
    int64_t newest_token;
    int64_t owner; /* the grant of the last read, 0: none */
    int64_t value[HISTORY_OBJECT_COUNT];
    int64_t version[HISTORY_OBJECT_COUNT];
    int64_t *members;
    size_t member_count, member_room;
    uint32_t stranger; /* index of the name of whoever gives none */
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
    char *out;
    size_t out_length;
    size_t pending; /* bytes read since the last whole request */
    bool closing;
    enum awaits awaits;
    ev_io told; /* its session's */
    struct table_session *session;
    struct store_access access; /* that its statement is for */
    struct store_result result;
    enum table_state state;
    const char *error;
};

/* --- answers --- */

static void answer(struct connection *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void answer(struct connection *connection, const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) abort();
    char *out = realloc(connection->out, connection->out_length + (size_t)length);
    if (!out) abort();
    memcpy(out + connection->out_length, text, (size_t)length);
    connection->out = out;
    connection->out_length += (size_t)length;
    free(text);
}

static void answer_pair(struct connection *connection, int64_t value, int64_t version) {
    answer(connection, "*2\r\n:%lld\r\n:%lld\r\n", (long long)value, (long long)version);
}

/* --- the resource --- */

static size_t member_place(const struct store *store, int64_t member) {
    size_t low = 0, high = store->member_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (store->members[middle] < member) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* False: it was there. */
static bool member_insert(struct store *store, int64_t member) {
    size_t place = member_place(store, member);
    if (place < store->member_count && store->members[place] == member) return false;
    if (store->member_count == store->member_room) {
        store->member_room = store->member_room ? store->member_room * 2 : 64;
        store->members = realloc(store->members, store->member_room * sizeof *store->members);
        if (!store->members) abort();
    }
    memmove(&store->members[place + 1], &store->members[place], (store->member_count - place) * sizeof *store->members);
    store->members[place] = member;
    store->member_count++;
    return true;
}

/* Who says too little to be let in at all. NULL: nobody does. */
static const char *objection(enum store_mode mode, const struct store_access *access) {
    bool checks_token = mode == STORE_FENCE_READS_AND_WRITES || (mode == STORE_FENCE_WRITES && access->write);
    if (checks_token && access->token == 0) return "NOTOKEN this store lets nobody in without a fencing token";
    if (mode == STORE_COMPARE_OWNER && access->grant == 0)
        return "NOGRANT this store lets nobody in who does not say under which grant";
    return NULL;
}

static bool is_refused(const struct store *store, const struct store_access *access) {
    switch (store->mode) {
    case STORE_FENCE_WRITES: return access->write && access->token < store->newest_token;
    case STORE_FENCE_READS_AND_WRITES: return access->token < store->newest_token;
    case STORE_COMPARE_OWNER: return access->write && access->grant != store->owner;
    case STORE_COMPARE_AND_SET:
        return access->write && !access->atomic && access->based_on != store->version[access->object];
    default: return false;
    }
}

static int64_t apply(struct store *store, const struct store_access *access) {
    int64_t *value = &store->value[access->object];
    if (!access->write) return *value;
    store->version[access->object]++;
    if (access->object == HISTORY_OBJECT_SET) {
        bool new = member_insert(store, access->value);
        *value = (int64_t)store->member_count;
        return new;
    }
    return *value = access->atomic ? (int64_t)((uint64_t)*value + (uint64_t)access->value) : access->value;
}

static struct store_result access_memory(struct store *store, const struct store_access *access) {
    if (is_refused(store, access))
        return (struct store_result){true, store->newest_token, store->version[access->object]};
    int64_t value = apply(store, access);
    bool registers = access->write || store->mode == STORE_FENCE_READS_AND_WRITES;
    if (registers && access->token > store->newest_token) store->newest_token = access->token;
    if (!access->write) store->owner = access->grant;
    return (struct store_result){.value = value, .version = store->version[access->object]};
}

/* --- what became of an access --- */

static void record(struct store *store, const struct store_access *access, const struct store_result *result) {
    int64_t based_on = access->atomic ? result->version - !result->refused : access->based_on;
    actor_append(&store->actor,
                 (struct history_record){.kind = access->write ? HISTORY_STORE_WRITE : HISTORY_STORE_READ,
                                         .outcome = result->refused ? OUTCOME_REFUSED : OUTCOME_OK,
                                         .object = (uint8_t)access->object,
                                         .flags = (uint8_t)((access->atomic ? HISTORY_FLAG_ATOMIC : 0) |
                                                            (result->refused ? HISTORY_FLAG_FENCED : 0)),
                                         .name = access->actor ? (uint32_t)access->actor : store->stranger,
                                         .op = (uint32_t)access->op,
                                         .grant = (uint32_t)access->grant,
                                         .token = access->token,
                                         .value = access->write ? access->value : result->value,
                                         .extra = access->write ? based_on : result->version});
}

static void answer_refusal(struct connection *connection, const struct store_access *access, int64_t newest_token) {
    switch (connection->store->mode) {
    case STORE_COMPARE_OWNER: answer(connection, "-OWNED somebody else has read since\r\n"); break;
    case STORE_COMPARE_AND_SET:
        answer(connection, "-CHANGED the write was not computed from the newest version\r\n");
        break;
    default:
        answer(connection, "-FENCED token %lld is older than ", (long long)access->token);
        if (newest_token) answer(connection, "%lld, ", (long long)newest_token);
        answer(connection, "the newest seen\r\n");
        break;
    }
}

static void conclude(struct connection *connection, const struct store_access *access,
                     const struct store_result *result) {
    record(connection->store, access, result);
    if (result->refused) answer_refusal(connection, access, result->value);
    else answer_pair(connection, result->value, result->version);
}

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
    else if (connection->error) answer(connection, "-ERR %s\r\n", connection->error);
    else conclude(connection, &connection->access, &connection->result);
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
        answer(each, "+PONG\r\n");
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
    if (!connection->session) return answer(connection, "-ERR %s\r\n", error), false;
    ev_io_init(&connection->told, on_told, table_fd(connection->session), EV_READ);
    connection->told.data = connection;
    return true;
}

static void access_table(struct connection *connection, const struct store_access *access) {
    if (!session_begin(connection)) return;
    connection->access = *access;
    if (!table_ask(connection->session, connection->store->mode, access)) {
        connection->closing = true;
        return;
    }
    connection->awaits = ITS_STATEMENT;
    connection->store->asked++;
    ev_io_start(connection->store->loop, &connection->told);
}

static void serve_access(struct connection *connection, const struct store_access *access) {
    struct store *store = connection->store;
    const char *why = objection(store->mode, access);
    if (why) {
        record(store, access, &(struct store_result){true, 0, store->version[access->object]});
        answer(connection, "-%s\r\n", why);
    } else if (store->table) {
        access_table(connection, access);
    } else {
        struct store_result result = access_memory(store, access);
        conclude(connection, access, &result);
    }
}

static void serve_ping(struct connection *connection) {
    if (connection->store->asked > 0) connection->awaits = ALL_STATEMENTS;
    else answer(connection, "+PONG\r\n");
}

/* --- requests --- */

static bool word_is(const redisReply *word, const char *text) {
    return strcasecmp(word->str, text) == 0;
}

static bool word_number(const redisReply *word, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(word->str, &end, 10);
    return errno == 0 && end != word->str && *end == '\0';
}

static bool fits_index(int64_t value) {
    return value >= 0 && value <= UINT32_MAX;
}

static bool parse_options(redisReply **words, size_t count, struct store_access *access) {
    for (size_t each = 0; each + 1 < count; each += 2) {
        int64_t *target = word_is(words[each], "TOKEN")     ? &access->token
                          : word_is(words[each], "ACTOR")   ? &access->actor
                          : word_is(words[each], "OP")      ? &access->op
                          : word_is(words[each], "GRANT")   ? &access->grant
                          : word_is(words[each], "VERSION") ? &access->based_on
                                                            : NULL;
        if (!target || !word_number(words[each + 1], target)) return false;
    }
    return count % 2 == 0 && access->token >= 0 && fits_index(access->op) && fits_index(access->grant) &&
           fits_index(access->actor);
}

static bool parse_access(redisReply **words, size_t count, struct store_access *access) {
    *access = (struct store_access){.based_on = -1};
    access->atomic = word_is(words[0], "ADD");
    access->write = access->atomic || word_is(words[0], "SET");
    size_t used = access->write ? 3 : 2;
    if (count < used) return false;
    for (unsigned object = 1; object < HISTORY_OBJECT_COUNT; object++)
        if (word_is(words[1], history_object_name(object))) access->object = object;
    bool fits = access->object == HISTORY_OBJECT_SET ? access->atomic || !access->write
                                                     : access->object != HISTORY_OBJECT_REGISTER || !access->atomic;
    if (!access->object || !fits || (access->write && !word_number(words[2], &access->value))) return false;
    return parse_options(words + used, count - used, access);
}

static void serve_members(struct connection *connection) {
    const struct store *store = connection->store;
    if (store->table) return answer(connection, "-ERR they are in the table: SELECT value FROM member\r\n");
    answer(connection, "*%zu\r\n", store->member_count);
    for (size_t each = 0; each < store->member_count; each++)
        answer(connection, ":%lld\r\n", (long long)store->members[each]);
}

static void serve(struct connection *connection, redisReply **words, size_t count) {
    struct store_access access;
    if (word_is(words[0], "GET") || word_is(words[0], "SET") || word_is(words[0], "ADD")) {
        if (parse_access(words, count, &access)) serve_access(connection, &access);
        else
            answer(connection, "-ERR usage: GET|SET|ADD register|counter|set [value] [TOKEN t] [VERSION v] "
                               "[ACTOR a] [OP n] [GRANT g], numbers only\r\n");
    } else if (word_is(words[0], "MEMBERS")) {
        serve_members(connection);
    } else if (word_is(words[0], "MODE")) {
        answer(connection, "+%s\r\n", MODES[connection->store->mode]);
    } else if (word_is(words[0], "PING")) {
        serve_ping(connection);
    } else if (word_is(words[0], "QUIT")) {
        answer(connection, "+OK\r\n");
        connection->closing = true;
    } else {
        answer(connection, "-ERR unknown command; there are GET SET ADD MEMBERS MODE PING QUIT\r\n");
    }
}

/* A request is an array of strings, as every Redis client sends it. */
static bool is_request(const redisReply *request) {
    if (request->type != REDIS_REPLY_ARRAY || request->elements == 0) return false;
    for (size_t each = 0; each < request->elements; each++)
        if (request->element[each]->type != REDIS_REPLY_STRING) return false;
    return true;
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
    free(connection->out);
    free(connection);
}

/* While it waits for a table nothing is read from it: its requests are served one after the other. */
static bool connection_flush(struct connection *connection) {
    while (connection->out_length) {
        ssize_t sent = send(connection->io.fd, connection->out, connection->out_length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) break;
        connection->out_length -= (size_t)sent;
        memmove(connection->out, connection->out + sent, connection->out_length);
    }
    if (connection->out_length && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    int events = (connection->awaits ? 0 : EV_READ) | (connection->out_length ? EV_WRITE : 0);
    ev_io_stop(connection->store->loop, &connection->io);
    ev_io_set(&connection->io, connection->io.fd, events);
    if (events) ev_io_start(connection->store->loop, &connection->io);
    return !connection->closing;
}

static void connection_serve(struct connection *connection) {
    void *request;
    while (!connection->closing && !connection->awaits &&
           redisReaderGetReply(connection->requests, &request) == REDIS_OK && request) {
        const redisReply *words = request;
        connection->pending = 0;
        if (is_request(words)) serve(connection, words->element, words->elements);
        else answer(connection, "-ERR a request is an array of strings\r\n");
        freeReplyObject(request);
    }
    if (connection->requests->err || connection->pending > REQUEST_LIMIT) {
        answer(connection, "-ERR not a RESP request, or longer than 1 MiB\r\n");
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

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
    strcpy(address.sun_path, path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 512) < 0) return -1;
    return fd;
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
    struct store store = {.mode = STORE_MODE_COUNT};
    if (parse(argc, argv, &arguments)) {
        for (int mode = 0; mode < STORE_MODE_COUNT; mode++)
            if (strcmp(arguments.mode, MODES[mode]) == 0) store.mode = (enum store_mode)mode;
        store.actor.history = history_open(arguments.history, &error);
        store.actor.stage = store.actor.history ? stage_open(arguments.stage, &error) : NULL;
    }
    if (!store.actor.stage || store.mode == STORE_MODE_COUNT) return fprintf(stderr, "store: %s\n", error.text), 2;
    store.actor.id = (uint32_t)arguments.actor;
    store.stranger = (uint32_t)arguments.stranger;
    store.value[HISTORY_OBJECT_COUNTER] = arguments.counter;
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
