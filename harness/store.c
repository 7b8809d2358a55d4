/* The store: the resource that the lock protects. A single-threaded RESP server on a unix socket with a register, a
 * counter and a set, which records every access in the history and, by its mode, refuses accesses with an old token:
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

enum mode {
    MODE_OPEN,
    MODE_FENCE_WRITES,
    MODE_FENCE_READS_AND_WRITES,
    MODE_COMPARE_OWNER,
    MODE_COMPARE_AND_SET,
    MODE_COUNT
};
static const char *const MODES[MODE_COUNT] = {"open", "fence-writes", "fence-reads-and-writes", "compare-owner",
                                              "compare-and-set"};

enum { REQUEST_LIMIT = 1 << 20 };

struct store {
    struct actor actor;
    enum mode mode;
    int64_t newest_token;
    int64_t owner; /* the grant of the last read, 0: none */
    int64_t value[HISTORY_OBJECT_COUNT];
    int64_t version[HISTORY_OBJECT_COUNT];
    int64_t *members;
    size_t member_count, member_room;
    uint32_t stranger; /* index of the name of whoever gives none */
    struct ev_loop *loop;
};

struct connection {
    ev_io io; /* first */
    struct store *store;
    redisReader *requests;
    char *out;
    size_t out_length;
    size_t pending; /* bytes read since the last whole request */
    bool closing;
};

/* What a request says besides verb, object and value. */
struct access {
    unsigned object;
    bool write, atomic;
    int64_t value, token, actor, op, grant, based_on;
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

/* NULL: let in. */
static const char *refusal(const struct store *store, const struct access *access) {
    static const char no_token[] = "NOTOKEN this store lets nobody in without a fencing token";
    switch (store->mode) {
    case MODE_FENCE_WRITES:
        if (!access->write) return NULL;
        /* fall through */
    case MODE_FENCE_READS_AND_WRITES:
        if (access->token == 0) return no_token;
        return access->token < store->newest_token ? "FENCED" : NULL;
    case MODE_COMPARE_OWNER:
        if (access->grant == 0) return "NOGRANT this store lets nobody in who does not say under which grant";
        return access->write && access->grant != store->owner ? "OWNED somebody else has read since" : NULL;
    case MODE_COMPARE_AND_SET:
        if (!access->write || access->atomic || access->based_on == store->version[access->object]) return NULL;
        return "CHANGED the write was not computed from the newest version";
    default: return NULL;
    }
}

static int64_t apply(struct store *store, const struct access *access) {
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

static void serve_access(struct connection *connection, const struct access *access) {
    struct store *store = connection->store;
    const char *refused = refusal(store, access);
    int64_t before = store->version[access->object];
    int64_t value = refused ? 0 : apply(store, access);
    int64_t based_on = access->atomic ? before : access->based_on;
    actor_append(&store->actor,
                 (struct history_record){.kind = access->write ? HISTORY_STORE_WRITE : HISTORY_STORE_READ,
                                         .outcome = refused ? OUTCOME_REFUSED : OUTCOME_OK,
                                         .object = (uint8_t)access->object,
                                         .flags = (uint8_t)((access->atomic ? HISTORY_FLAG_ATOMIC : 0) |
                                                            (refused ? HISTORY_FLAG_FENCED : 0)),
                                         .name = access->actor ? (uint32_t)access->actor : store->stranger,
                                         .op = (uint32_t)access->op,
                                         .grant = (uint32_t)access->grant,
                                         .token = access->token,
                                         .value = access->write ? access->value : value,
                                         .extra = access->write ? based_on : before});
    if (refused && strcmp(refused, "FENCED") == 0) {
        answer(connection, "-FENCED token %lld is older than %lld, the newest seen\r\n", (long long)access->token,
               (long long)store->newest_token);
    } else if (refused) {
        answer(connection, "-%s\r\n", refused);
    } else {
        bool registers = access->write || store->mode == MODE_FENCE_READS_AND_WRITES;
        if (registers && access->token > store->newest_token) store->newest_token = access->token;
        if (!access->write) store->owner = access->grant;
        answer_pair(connection, value, store->version[access->object]);
    }
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

static bool parse_options(redisReply **words, size_t count, struct access *access) {
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

static bool parse_access(redisReply **words, size_t count, struct access *access) {
    *access = (struct access){.based_on = -1};
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
    answer(connection, "*%zu\r\n", store->member_count);
    for (size_t each = 0; each < store->member_count; each++)
        answer(connection, ":%lld\r\n", (long long)store->members[each]);
}

static void serve(struct connection *connection, redisReply **words, size_t count) {
    struct access access;
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
        answer(connection, "+PONG\r\n");
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
    ev_io_stop(connection->store->loop, &connection->io);
    close(connection->io.fd);
    redisReaderFree(connection->requests);
    free(connection->out);
    free(connection);
}

static bool connection_flush(struct connection *connection) {
    while (connection->out_length) {
        ssize_t sent = send(connection->io.fd, connection->out, connection->out_length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) break;
        connection->out_length -= (size_t)sent;
        memmove(connection->out, connection->out + sent, connection->out_length);
    }
    if (connection->out_length && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    int events = connection->out_length ? EV_READ | EV_WRITE : EV_READ;
    ev_io_stop(connection->store->loop, &connection->io);
    ev_io_set(&connection->io, connection->io.fd, events);
    ev_io_start(connection->store->loop, &connection->io);
    return !connection->closing;
}

/* False: the connection is to be closed. */
static bool connection_read(struct connection *connection) {
    char bytes[16384];
    ssize_t got = recv(connection->io.fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0 || redisReaderFeed(connection->requests, bytes, (size_t)got) != REDIS_OK) return false;
    connection->pending += (size_t)got;
    void *request;
    while (!connection->closing && redisReaderGetReply(connection->requests, &request) == REDIS_OK && request) {
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
    return true;
}

static void on_event(struct ev_loop *loop, ev_io *io, int events) {
    struct connection *connection = (struct connection *)io;
    (void)loop;
    bool open = !(events & EV_READ) || connection_read(connection);
    if (!open || !connection_flush(connection)) connection_close(connection);
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events) {
    struct store *store = io->data;
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    (void)events;
    if (fd < 0) return;
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) abort();
    connection->store = store;
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
    const char *history, *stage, *socket, *mode;
    long long actor, stranger, counter;
};

static bool parse(int argc, char **argv, struct arguments *arguments) {
    const struct option options[] = {
        {"history", required_argument, NULL, 'h'}, {"stage", required_argument, NULL, 's'},
        {"socket", required_argument, NULL, 'S'},  {"mode", required_argument, NULL, 'm'},
        {"actor", required_argument, NULL, 'a'},   {"stranger", required_argument, NULL, 'x'},
        {"counter", required_argument, NULL, 'c'}, {0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'h': arguments->history = optarg; break;
        case 's': arguments->stage = optarg; break;
        case 'S': arguments->socket = optarg; break;
        case 'm': arguments->mode = optarg; break;
        case 'a': arguments->actor = atoll(optarg); break;
        case 'x': arguments->stranger = atoll(optarg); break;
        case 'c': arguments->counter = atoll(optarg); break;
        default: return false;
        }
    }
    return arguments->history && arguments->stage && arguments->socket && arguments->mode && optind == argc;
}

int main(int argc, char **argv) {
    struct arguments arguments = {0};
    struct history_error error = {.text = "usage: store --history F --stage F --socket S --mode M --actor N"};
    struct store store = {.mode = MODE_COUNT};
    if (parse(argc, argv, &arguments)) {
        for (int mode = 0; mode < MODE_COUNT; mode++)
            if (strcmp(arguments.mode, MODES[mode]) == 0) store.mode = (enum mode)mode;
        store.actor.history = history_open(arguments.history, &error);
        store.actor.stage = store.actor.history ? stage_open(arguments.stage, &error) : NULL;
    }
    if (!store.actor.stage || store.mode == MODE_COUNT) return fprintf(stderr, "store: %s\n", error.text), 2;
    store.actor.id = (uint32_t)arguments.actor;
    store.stranger = (uint32_t)arguments.stranger;
    store.value[HISTORY_OBJECT_COUNTER] = arguments.counter;
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
