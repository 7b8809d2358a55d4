/* The environment: all that a lock implementation may touch. Lock code is plain blocking C against this header and
 * nothing else: no socket, no thread, no clock, no randomness of its own. So the same file runs live (processes,
 * sockets, harness/env_live.h) and under any other scheduler that implements harness/env_ops.h.
 *
 * One `struct env` belongs to one strand: a client's worker has one, and the watchdog it starts has another. Nothing
 * here says what a strand is; a function that "blocks" returns later, that is all.
 *
 * Times are ns (env clocks) or ms (limits); limits are measured on the environment's monotonic clock. */
#ifndef LOCKSTORM_ENV_H
#define LOCKSTORM_ENV_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/outcome.h"

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
 * to the environment until the next command of the same strand. Never NULL. */
const struct env_reply *env_command(struct env *env, int node, const char *format, ...)
    __attribute__((format(printf, 3, 0)));

/* The same, but waits at most limit_ms: for a node that others can stand in for. */
const struct env_reply *env_command_within(struct env *env, int node, int64_t limit_ms, const char *format, ...)
    __attribute__((format(printf, 4, 0)));

/* The same with `count` zero-terminated words in front of the formatted rest; each is one argument whatever it holds
 * (a script). */
const struct env_reply *env_command_after(struct env *env, int node, int64_t limit_ms, const char *const *words,
                                          size_t count, const char *format, va_list arguments);

/* The same for a command that asks the server to sit on it for limit_ms (BLPOP, WAIT; -1: for ever). The server gives
 * up when more than that has passed by its own clock; UNKNOWN when env_reply_limit_ms later there is still no answer.
 */
const struct env_reply *env_command_blocking(struct env *env, int node, int64_t limit_ms, const char *format, ...)
    __attribute__((format(printf, 4, 0)));

/* For a node that speaks SQL (PostgreSQL): one statement, with `count` parameters in text form for $1, $2, ... The
 * reply is an ARRAY of rows, each an ARRAY of STRINGs and NILs, a STATUS (the command's tag) when there can be no rows,
 * or an ERROR whose text begins with the five letters of its SQLSTATE. Each strand has a session of its own, which
 * lasts from its first statement until it is lost: then that statement is UNKNOWN, and the next one begins a new
 * session. */
const struct env_reply *env_query(struct env *env, int node, const char *statement, const char *const *parameters,
                                  size_t count);

/* The same for a statement that the server may let wait, without a limit: for a lock that somebody else holds. */
const struct env_reply *env_query_blocking(struct env *env, int node, const char *statement,
                                           const char *const *parameters, size_t count);

/* For a node that speaks HTTP with JSON in it (etcd's gateway): POSTs a body to a path and waits for the whole answer,
 * at most limit_ms. The reply is a STRING, the answer's body; or an ERROR, whose text begins with the three digits of
 * its status; or UNKNOWN, and then it was sent once at the most. Each strand has a connection of its own to each node,
 * made anew when it has ended. */
const struct env_reply *env_post(struct env *env, int node, int64_t limit_ms, const char *path, const char *body);

/* The same for an answer that goes on, line by line: a strand has one of a node at a time, on a connection of its own.
 * UNKNOWN when it cannot be asked for. */
enum outcome env_stream(struct env *env, int node, const char *path, const char *body);

/* The next line of it, a STRING; waits at most limit_ms (-1: for ever). UNKNOWN when none came, or when it has ended.
 */
const struct env_reply *env_stream_line(struct env *env, int node, int64_t limit_ms);

/* Ends it. Harmless when there is none. */
void env_stream_end(struct env *env, int node);

/* For nodes that speak ZooKeeper: all of them are one ensemble, with which the client has one session. */
enum env_session_state {
    ENV_SESSION_LOST = 0,  /* there is none: what it had is gone, or will be */
    ENV_SESSION_SUSPENDED, /* no server is heard; it may go on with another, or be lost */
    ENV_SESSION_CONNECTED,
};

/* Begins a session that servers end when they have not heard of this client for timeout_ms, unless there is one that is
 * not lost. Its heartbeats are the client's watchdog, which this starts. `changed` is called from there, with that
 * strand's environment, whenever the session is in another state. UNKNOWN when there was no answer, or when the servers
 * want another timeout; the session may still be made. */
enum outcome env_session_open(struct env *env, int64_t timeout_ms,
                              void (*changed)(struct env *env, enum env_session_state state, void *argument),
                              void *argument);
enum env_session_state env_session_state(struct env *env);
/* Ends it, here at once and at the servers when they hear of it or have not heard of the client for long enough: with
 * all that it had, also what a request may still have made whose answer never came. */
void env_session_end(struct env *env);

enum env_tree_verb {
    ENV_TREE_CREATE,      /* a node that stays: ARRAY of its path (STRING) and its czxid (INTEGER) */
    ENV_TREE_CREATE_MINE, /* ephemeral, with a number at the end of its name: the same */
    ENV_TREE_DELETE,      /* whatever its version: STATUS */
    ENV_TREE_CHILDREN,    /* ARRAY of names (STRING) */
    ENV_TREE_LOOK,        /* its czxid (INTEGER) */
    ENV_TREE_WATCH,       /* the same, and env_tree_news says when it changes, or appears */
};

/* One request about the node at this path; by the client's worker only. NIL when there is no such node, of a create: no
 * such parent; an ERROR when the server refuses; UNKNOWN when the connection was lost or no answer came within
 * env_reply_limit_ms: then it may have been carried out, or may be later. */
const struct env_reply *env_tree(struct env *env, enum env_tree_verb verb, const char *path);

/* Returns true when a watch has fired, or the session's state has changed, since it last did; false after limit_ms
 * (-1: it waits for ever). */
bool env_tree_news(struct env *env, int64_t limit_ms);

/* Subscribes this strand to a channel of a node, and returns when the node has confirmed it: every message published
 * after that is kept until env_message takes it. UNKNOWN without a confirmation. Channels are any bytes. */
enum outcome env_subscribe(struct env *env, int node, const char *channel, size_t length);

/* Ends it; messages that were not taken are dropped. */
void env_unsubscribe(struct env *env, int node, const char *channel, size_t length);

/* The next message on any channel of that node to which this strand is subscribed: a STRING, owned by the environment
 * until the next call. Waits at most limit_ms (-1: for ever); UNKNOWN when none came, or when the connection was lost -
 * and with it every subscription to that node. */
const struct env_reply *env_message(struct env *env, int node, int64_t limit_ms);

/* How long an ordinary command waits for its reply before its outcome is unknown. */
int64_t env_reply_limit_ms(const struct env *env);

/* The clock that never jumps, and the clock as this host believes it (ns since 1970). */
int64_t env_mono_ns(const struct env *env);
int64_t env_wall_ns(const struct env *env);

/* Returns after that much of monotonic time. */
void env_sleep(struct env *env, int64_t duration_ms);

/* Random numbers from the trial's seed: any 64 bits; a number in [0, bound). */
uint64_t env_random(struct env *env);
uint64_t env_random_below(struct env *env, uint64_t bound);

/* A named place where a fault can land exactly ("after-acquire-reply"). Costs next to nothing when none does. */
void env_checkpoint(struct env *env, const char *name);

/* Tells the holder until when (env_mono_ns) it may believe in its grant from now on: a renewal was granted. A stamp
 * that has passed says that the grant is lost, INT64_MAX that it is good until told otherwise. For locks whose grants
 * state a validity; from the worker or its watchdog. */
void env_tell_validity(struct env *env, int64_t valid_until_ns);

/* Starts the client's watchdog: run(env, argument) on a strand and an env of its own, so it stands still when the
 * client is stopped, as a renewal thread does. It must return soon after env_watchdog_stopping turns true; its sleeps
 * end early then. One at a time: false if one runs, or if it cannot be started. */
bool env_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument);
/* Asks it to stop and returns when it has. Nothing happens when none runs. */
void env_watchdog_stop(struct env *env);
/* For the watchdog: whether it was asked to. */
bool env_watchdog_stopping(const struct env *env);

#endif
