/* A real server of a library's world, whatever it speaks.
 *
 * Of Redis a running server is used, whose clock the world sets (harness/simulation/node.h). Every other service is a
 * hosted program: this process supervises it as it does the libraries' own programs, so it runs only within
 * server_settle, until it is quiet, and its timers go by the world's clock.
 *
 * No schedule covers a server that ends: every function here then ends the process with status 3 and a sentence on
 * standard error. A server may close a connection. */
#pragma once

#include "harness/library_service/hosted_program.h"
#include "harness/library_service/message_format.h"
#include "harness/simulation/node.h"

struct library_server;

/* Is called with what is left at a server: `what` it is ("key", "lock", ...), its name, and for how many ms it stays
 * without anybody's doing; -1: for good. */
typedef void residue_taken(void *hearer, const char *what, const char *name, int64_t remaining_ms);

enum { KEY_ELSEWHERE = -3 };

enum { SERVER_COLUMNS = 8, SERVER_VALUE = 256, SERVER_REASON = 200 };

/* Is called with the first SERVER_COLUMNS values of a row, cut to SERVER_VALUE bytes; NULL: there is no value. */
typedef void row_taken(void *hearer, const char *const *values, int count);

struct server_kind {
    const char *service; /* as --service names it */
    const struct message_format *requests, *answers;
    const char *busy; /* an answer of a server that cannot be asked now; NULL: it has none that fits every request */
    bool is_hosted;   /* and not a running server */
    bool restarts;    /* faults may restart it */
    bool is_still;    /* its clock stands still, whatever the world's does */
    bool is_joined;   /* such servers speak to each other: what reaches one may make another one answer */
    /* Of a hosted server, which is started anew for each session: whether it answers now. */
    bool (*answers_now)(struct library_server *server);
    /* A session ends: a hosted server is ended, a running one is emptied. */
    void (*end)(struct library_server *server);
    /* What a schedule has left is deleted. */
    void (*flush)(struct library_server *server);
    /* The remaining time of a key in ms, as PTTL answers; KEY_ELSEWHERE: another server has such keys. NULL: the
     * service has no leases of keys. */
    int64_t (*left_ms)(struct library_server *server, const char *key);
    void (*residue)(struct library_server *server, residue_taken *taken, void *taker);
    /* Asks in the server's own language, by the world's own connection: a statement of SQL, or a command of Redis as a
     * line. The rows of the answer go to `taken`, which may be NULL. False: the server refuses it, and `reason`, of
     * SERVER_REASON bytes, says why. NULL: the service has no such language. */
    bool (*ask)(struct library_server *server, const char *text, row_taken *taken, void *taker, char *reason);
    /* Of a server of an application: its data are kept as they are now, and flush brings them back. NULL: flush deletes
     * all of them. */
    void (*save)(struct library_server *server);
};

extern const struct server_kind REDIS_KIND, CLUSTER_KIND, SENTINEL_KIND, ETCD_KIND, POSTGRES_KIND, ZOOKEEPER_KIND;

struct library_server {
    const struct server_kind *kind;
    const char *address; /* the caller's: the path of a unix socket, or HOST:PORT */
    const char *start;   /* the caller's: of Redis the file of its clock, else the program that starts the server */
    char log[512];       /* of a hosted server: for its standard error */
    uint64_t seed;       /* of a hosted server's random numbers */
    struct shared_page *page;
    struct task_slot *slot; /* of a hosted server: its clock */
    const char *database;   /* the caller's: of PostgreSQL that of an application; NULL: of locks */
    bool is_saved;          /* its data were kept */
    struct node node;       /* Redis */
    struct hosted_program program;
    bool runs;   /* a hosted server was started */
    int control; /* of the world's own connection to a hosted server, which its kind keeps; or -1 */
    uint32_t control_number;
};

/* The kind with this name; or NULL. */
const struct server_kind *server_kind_named(const char *service);

/* `server` has kind, address, start, log, seed, page and slot, and must not move in memory until server_close. */
void server_open(struct library_server *server);
void server_close(struct library_server *server);

/* Runs a hosted server until it is quiet, if it is due or has news; waits for a running one. */
void server_settle(struct library_server *server);
/* Whether server_settle would run it. */
bool server_has_news(const struct library_server *server);
/* The stamp of the page's clock at which it goes on by itself; INT64_MAX: never. */
int64_t server_deadline_ns(const struct library_server *server);
/* The world's clock has moved. */
void server_clock_moved(struct library_server *server);
/* Its wall clock jumps. */
void server_clock_jump(struct library_server *server, int64_t step_ns);
/* A schedule begins: no data, its clock right, its random numbers from a seed. */
void server_reset(struct library_server *server, uint64_t seed);

_Noreturn void server_give_up(const struct library_server *server, const char *reason);

/* --- of a hosted server --- */

void hosted_server_end(struct library_server *server);
/* Connects to the server; -1: it does not listen. */
int server_connect(const struct library_server *server);
/* Sends all of it, lets the server run, and receives what has come then, as far as there is room. The number of bytes;
 * 0: nothing, or the connection is lost. */
size_t server_exchange(struct library_server *server, int fd, struct span request, char *answer, size_t room);

/* --- a connection of a library --- */

struct server_channel {
    struct library_server *server;
    int fd;     /* -1: it was not used yet, or is closed */
    bool ended; /* the server has closed it */
};

void channel_send(struct server_channel *channel, struct span bytes);
/* Takes bytes that have arrived; returns their number. */
size_t channel_poll(struct server_channel *channel, char *bytes, size_t room);
/* Closes it; the server has noticed when the function returns. */
void channel_close(struct server_channel *channel);
