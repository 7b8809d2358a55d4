/* The environment: all that a lock implementation may touch. Lock code is plain blocking C against this header: it has
 * no socket, thread, clock or randomness of its own. So the same file runs live (processes and sockets,
 * harness/environment/env_live.h) and in the explorer (coroutines), or in anything else that implements
 * harness/environment/env_ops.h. The resource that the lock protects cannot be reached from here.
 *
 * One `struct env` belongs to one task: a client's worker has one, and the watchdog that it starts has another. To lock
 * code a task is a thread: a function that blocks returns later.
 *
 * Times are ns (clocks) or ms (limits); limits are measured on the environment's monotonic clock. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/history/outcome.h"

struct env;

enum { ENV_NS_PER_MS = 1000000 };

enum env_reply_kind {
    ENV_REPLY_UNKNOWN = 0, /* no answer: timed out, connection lost. The command may or may not have run. */
    ENV_REPLY_NIL,
    ENV_REPLY_STATUS,  /* text */
    ENV_REPLY_STRING,  /* text */
    ENV_REPLY_INTEGER, /* integer */
    ENV_REPLY_ARRAY,   /* items, count */
    ENV_REPLY_ERROR,   /* text: the server refused, or failed half-way */
};

struct env_reply {
    enum env_reply_kind kind;
    int64_t integer;
    const char *text; /* zero-terminated; NULL unless the kind has one */
    size_t length;    /* of text; it may hold zero bytes */
    const struct env_reply *items;
    size_t count;
};

/* How many nodes there are; they are numbered from 0. */
int env_nodes(const struct env *env);

/* Sends one command to a node and waits for its reply, at most env_reply_limit_ms. The format is hiredis': %s, %b
 * (pointer, size_t), %d, %lld; arguments are separated by spaces in the format, not in the values. The reply belongs
 * to the environment until the next command of the same task. Never NULL. */
const struct env_reply *env_command(struct env *env, int node, const char *format, ...)
    __attribute__((format(printf, 3, 0)));

/* The same, but waits at most limit_ms: for a node that others can stand in for. */
const struct env_reply *env_command_within(struct env *env, int node, int64_t limit_ms, const char *format, ...)
    __attribute__((format(printf, 4, 0)));

/* The same with `count` zero-terminated words in front of the formatted rest; each is one argument whatever it holds
 * (a script). */
const struct env_reply *env_command_after(struct env *env, int node, int64_t limit_ms, const char *const *words,
                                          size_t count, const char *format, va_list arguments);

/* The same for a command that asks the server to wait up to limit_ms (BLPOP, WAIT; -1: for ever) before it answers. The
 * server gives up when more than that has passed by its own clock; UNKNOWN when env_reply_limit_ms later there is still
 * no answer. */
const struct env_reply *env_command_blocking(struct env *env, int node, int64_t limit_ms, const char *format, ...)
    __attribute__((format(printf, 4, 0)));

/* For a node that speaks SQL (PostgreSQL): one statement, with `count` parameters in text form for $1, $2, ... The
 * reply is an ARRAY of rows, each an ARRAY of STRINGs and NILs, a STATUS (the command's tag) when there can be no rows,
 * or an ERROR whose text begins with the five letters of its SQLSTATE. Each task has a session of its own, which
 * lasts from its first statement until it is lost: then that statement is UNKNOWN, and the next one begins a new
 * session. */
const struct env_reply *env_query(struct env *env, int node, const char *statement, const char *const *parameters,
                                  size_t count);

/* The same for a statement that may wait in the server without a limit: for a lock that another session holds. */
const struct env_reply *env_query_blocking(struct env *env, int node, const char *statement,
                                           const char *const *parameters, size_t count);

/* For a node that speaks HTTP with JSON in it (etcd's gateway): POSTs a body to a path and waits for the whole answer,
 * at most limit_ms. The reply is a STRING, the answer's body; or an ERROR, whose text begins with the three digits of
 * its status; or UNKNOWN, and then it was sent at most once. Each task has a connection of its own to each node,
 * made anew when it has ended. */
const struct env_reply *env_post(struct env *env, int node, int64_t limit_ms, const char *path, const char *body);

/* The same for an answer that is a stream of lines: a task has at most one for each node, on a connection of its own.
 * UNKNOWN when the request cannot be sent. */
enum outcome env_stream(struct env *env, int node, const char *path, const char *body);

/* The stream's next line, a STRING; waits at most limit_ms (-1: for ever). UNKNOWN when none came, or when the stream
 * has ended. */
const struct env_reply *env_stream_line(struct env *env, int node, int64_t limit_ms);

/* Ends the stream. Harmless without a stream. */
void env_stream_end(struct env *env, int node);

/* For nodes that speak ZooKeeper: all of them are one ensemble, with which the client has one session. */
enum env_session_state {
    ENV_SESSION_LOST = 0,  /* no session: the servers delete what belonged to it, or have */
    ENV_SESSION_SUSPENDED, /* no server answers; it may go on with another server, or be lost */
    ENV_SESSION_CONNECTED,
};

/* Begins a session that the servers end when they have not heard from this client for timeout_ms; does nothing when
 * there is one that is not lost. Starts the client's watchdog, which sends the session's heartbeats. `changed` is
 * called from there, with that task's environment, whenever the session's state changes. UNKNOWN when there was no
 * answer, or when the servers grant another timeout; the session may still be made. UNKNOWN also when the client has a
 * watchdog already, or none can be started: then the state is LOST, and a later call tries again. */
enum outcome env_session_open(struct env *env, int64_t timeout_ms,
                              void (*changed)(struct env *env, enum env_session_state state, void *argument),
                              void *argument);
enum env_session_state env_session_state(struct env *env);
/* Ends the session: here at once, at the servers when the message arrives or the session times out. Everything that
 * belongs to the session goes with it, also what a request has made whose answer never came. */
void env_session_end(struct env *env);

enum env_tree_verb {
    ENV_TREE_CREATE,      /* a persistent node: ARRAY of its path (STRING) and its czxid (INTEGER) */
    ENV_TREE_CREATE_MINE, /* an ephemeral sequential node: the same */
    ENV_TREE_DELETE,      /* whatever the node's version: STATUS */
    ENV_TREE_CHILDREN,    /* ARRAY of names (STRING) */
    ENV_TREE_LOOK,        /* its czxid (INTEGER) */
    ENV_TREE_WATCH,       /* the same; env_tree_news returns when the node changes or appears */
};

/* One request about the ZooKeeper node at this path; by the client's worker only. NIL when the node (for a create: its
 * parent) does not exist; ERROR when the server refuses; UNKNOWN when the connection was lost or no answer came within
 * env_reply_limit_ms: the request may have been carried out, or may be later. */
const struct env_reply *env_tree(struct env *env, enum env_tree_verb verb, const char *path);

/* Returns true when a watch has fired or the session's state has changed since the last call that returned true; false
 * after limit_ms (-1: it waits for ever). */
bool env_tree_news(struct env *env, int64_t limit_ms);

/* For a lock that is a program of its own, which the client hosts (an adapter, docs/adapters.md): sends it one line,
 * given without the line's end. The first call starts the program. False: it cannot be started, or reads no more. By
 * the client's worker only. */
bool env_adapter_send(struct env *env, const char *line);
/* What env_mono_ns shows when the adapter's monotonic clock shows adapter_ns. */
int64_t env_adapter_mono_ns(struct env *env, int64_t adapter_ns);

/* The program's next line, a STRING; waits at most limit_ms (-1: for ever). UNKNOWN when none came, ERROR with a reason
 * when none can come any more. */
const struct env_reply *env_adapter_receive(struct env *env, int64_t limit_ms);

/* Where that program finds a node: the path of a unix socket, or "host:port". The environment owns it. */
const char *env_node_address(const struct env *env, int node);

/* Ends the client's process with this sentence on standard error: the adapter does not speak the protocol. */
enum { ENV_GAVE_UP = 4 }; /* the exit status of a client whose lock cannot go on */
_Noreturn void env_give_up(struct env *env, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Subscribes this task to a channel of a node, and returns when the node has confirmed it: every message that is
 * published after that is kept until env_message takes it. UNKNOWN without a confirmation. A channel's name may hold
 * any bytes. */
enum outcome env_subscribe(struct env *env, int node, const char *channel, size_t length);

/* Ends the subscription; messages that were not taken are dropped. */
void env_unsubscribe(struct env *env, int node, const char *channel, size_t length);

/* The next message on any channel of that node to which this task is subscribed: a STRING, owned by the environment
 * until the next call. Waits at most limit_ms (-1: for ever); UNKNOWN when none came, or when the connection was lost -
 * and with it every subscription to that node. */
const struct env_reply *env_message(struct env *env, int node, int64_t limit_ms);

/* How long an ordinary command waits for its reply before its outcome is unknown. */
int64_t env_reply_limit_ms(const struct env *env);

/* This host's monotonic clock, and its wall clock, which may be wrong (ns since 1970). */
int64_t env_mono_ns(const struct env *env);
int64_t env_wall_ns(const struct env *env);

/* Returns when duration_ms have passed on the monotonic clock. */
void env_sleep(struct env *env, int64_t duration_ms);

/* Random numbers from the trial's seed: any 64 bits; a number in [0, bound). */
uint64_t env_random(struct env *env);
uint64_t env_random_below(struct env *env, uint64_t bound);

/* A named place at which a trial can stop the client or inject a fault ("after-acquire-reply"). Costs next to nothing
 * when the trial does not. */
void env_checkpoint(struct env *env, const char *name);

/* Announces to the holder until when (env_mono_ns) its grant is valid from now on, for instance after a renewal. A
 * stamp that has passed says that the grant is lost, INT64_MAX that it is valid until the next announcement. After the
 * holder has asked for the release nothing follows from it. For locks whose grants state a validity; from the worker or
 * its watchdog. */
void env_tell_validity(struct env *env, int64_t valid_until_ns);

/* What a lock asks its servers for. */
enum env_asked { ENV_ASKED_GRANT = 1, ENV_ASKED_EXTENSION, ENV_ASKED_RELEASE };
enum { ENV_ASKED_PARTS = 8 }; /* added to it: not several nodes were asked, but several locks that make up this one */

/* The answers of the servers asked so far, and of one more: a decimal digit for each, 1 yes, 2 no, 3 none. */
static inline int64_t env_answers_add(int64_t answers, enum outcome answer) {
    return answers * 10 + (answer == OUTCOME_OK ? 1 : answer == OUTCOME_REFUSED ? 2 : 3);
}

/* Tells the trial what was answered to one request, for its story; nothing else follows from it. `asked`: of enum
 * env_asked, and ENV_ASKED_PARTS. answers: by env_answers_add, for 18 servers at most; 0: it does not say which
 * answered how. outcome: what the lock makes of it. From the worker or its watchdog. */
void env_tell_answers(struct env *env, int asked, int64_t answers, enum outcome outcome);

/* For the holder of a lock, when an acquire has come back: the stamp (env_mono_ns) at which the first command to a node
 * was sent after the last wait for time, a message or a blocking answer. What the attempt was granted was not granted
 * before. 0: it is not known. */
int64_t env_attempt_ns(const struct env *env);

/* Starts the client's watchdog: run(env, argument) on a task and an env of its own. Like a renewal thread it stands
 * still when the client's process is stopped. `run` must return soon after env_watchdog_stopping turns true; its sleeps
 * end early then. A client has at most one: false if it runs already, or cannot be started. */
bool env_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument);
/* Asks it to stop and returns when it has. Nothing happens when none runs. */
void env_watchdog_stop(struct env *env);
/* For the watchdog: whether env_watchdog_stop was called. */
bool env_watchdog_stopping(const struct env *env);
