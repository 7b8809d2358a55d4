/* What an implementation of the environment provides; env.h describes the functions that call it. Limits are durations
 * in ns here, INT64_MAX: no limit. No slot is NULL: there are functions, below, for what an implementation does not
 * serve. Only implementations and env_ops.c include this. */
#pragma once

#include "harness/environment/env.h"
#include "harness/scheduler/random.h"

/* Each operation is one entry here: result, name, parameters, the names of these, and, of those that an environment
 * need not serve, the result when it does not. From the entries come struct env_ops, the functions env_NAME that only
 * pass their arguments on (SAME), and the functions env_unserved_NAME. The functions of OTHER entries have parameters
 * of their own in env.h, limits in ms for instance, and are written out in env_ops.c. */

/* Every environment serves these. `command` is one encoded RESP command; may_block: as env_command_blocking. */
#define ENV_OPS_SERVED(SAME, OTHER)                                                                                    \
    OTHER(const struct env_reply *, command,                                                                           \
          (struct env * env, int node, const char *command, size_t length, int64_t limit_ns, bool may_block), )        \
    SAME(enum outcome, subscribe, (struct env * env, int node, const char *channel, size_t length),                    \
         (env, node, channel, length))                                                                                 \
    SAME(void, unsubscribe, (struct env * env, int node, const char *channel, size_t length),                          \
         (env, node, channel, length))                                                                                 \
    OTHER(const struct env_reply *, message, (struct env * env, int node, int64_t limit_ns), )                         \
    SAME(int64_t, mono_ns, (const struct env *env), (env))                                                             \
    SAME(int64_t, wall_ns, (const struct env *env), (env))                                                             \
    OTHER(void, sleep_until, (struct env * env, int64_t mono_ns), )                                                    \
    SAME(void, checkpoint, (struct env * env, const char *name), (env, name))                                          \
    SAME(bool, watchdog_start, (struct env * env, void (*run)(struct env *, void *), void *argument),                  \
         (env, run, argument))                                                                                         \
    SAME(void, watchdog_stop, (struct env * env), (env))                                                               \
    SAME(bool, watchdog_stopping, (const struct env *env), (env))

/* These have a default: the stamp at which an attempt began is not known everywhere. */
#define ENV_OPS_WITH_DEFAULT(SAME, OTHER)                                                                              \
    SAME(int64_t, attempt_ns, (const struct env *env), (env), 0)                                                       \
    OTHER(void, give_up, (struct env * env, const char *sentence), , exit_with(sentence))

/* An environment whose nodes are Redis servers, and which hosts no adapter, does not serve these. An unserved text
 * begins as the service's own refusals do: with a status of HTTP, or an SQLSTATE. */
#define ENV_OPS_EXCEPT_REDIS(SAME, OTHER)                                                                              \
    OTHER(const struct env_reply *, query,                                                                             \
          (struct env * env, int node, const char *statement, const char *const *parameters, size_t count,             \
           int64_t limit_ns, bool may_block),                                                                          \
          , unserved("0A000 SQL is not served here"))                                                                  \
    OTHER(const struct env_reply *, post,                                                                              \
          (struct env * env, int node, const char *path, const char *body, int64_t limit_ns), ,                        \
          unserved("501 HTTP is not served here"))                                                                     \
    SAME(enum outcome, stream, (struct env * env, int node, const char *path, const char *body),                       \
         (env, node, path, body), OUTCOME_REFUSED)                                                                     \
    OTHER(const struct env_reply *, stream_line, (struct env * env, int node, int64_t limit_ns), ,                     \
          unserved("501 HTTP is not served here"))                                                                     \
    SAME(void, stream_end, (struct env * env, int node), (env, node), (void)0)                                         \
    SAME(enum outcome, session_open,                                                                                   \
         (struct env * env, int64_t timeout_ms, void (*changed)(struct env *, enum env_session_state, void *),         \
          void *argument),                                                                                             \
         (env, timeout_ms, changed, argument), OUTCOME_REFUSED)                                                        \
    SAME(enum env_session_state, session_state, (struct env * env), (env), ENV_SESSION_LOST)                           \
    SAME(void, session_end, (struct env * env), (env), (void)0)                                                        \
    SAME(const struct env_reply *, tree, (struct env * env, enum env_tree_verb verb, const char *path),                \
         (env, verb, path), unserved("ZooKeeper is not served here"))                                                  \
    OTHER(bool, tree_news, (struct env * env, int64_t limit_ns), , false)                                              \
    SAME(bool, adapter_send, (struct env * env, const char *line), (env, line), false)                                 \
    SAME(int64_t, adapter_mono_ns, (struct env * env, int64_t adapter_ns), (env, adapter_ns), adapter_ns)              \
    OTHER(const struct env_reply *, adapter_receive, (struct env * env, int64_t limit_ns), ,                           \
          unserved("adapters are not hosted here"))                                                                    \
    SAME(const char *, node_address, (const struct env *env, int node), (env, node), "")

#define ENV_OPS_ALL(SAME, OTHER)                                                                                       \
    ENV_OPS_SERVED(SAME, OTHER) ENV_OPS_WITH_DEFAULT(SAME, OTHER) ENV_OPS_EXCEPT_REDIS(SAME, OTHER)

struct env_ops {
#define ENV_SLOT(result, name, parameters, ...) result(*name) parameters;
    ENV_OPS_ALL(ENV_SLOT, ENV_SLOT)
#undef ENV_SLOT
};

/* The stamp limit_ns after now_ns; INT64_MAX: never. */
static inline int64_t env_deadline_ns(int64_t now_ns, int64_t limit_ns) {
    return limit_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + limit_ns;
}

/* Who hears what a lock tells (env_tell_validity, env_tell_answers): by these functions, in the watchdog's task too.
 * `holder` NULL: nobody. */
struct env_hearer {
    void *holder;
    void (*announce_validity)(void *holder, int64_t valid_until_ns);
    void (*record_answers)(void *holder, int asked, int64_t answers, enum outcome outcome);
};

/* The first member of every implementation's own structure. */
struct env {
    const struct env_ops *ops;
    int nodes;
    int64_t reply_limit_ms;
    struct random random;
    struct env_hearer hearer;
};

/* `random`: its random numbers. */
void env_begin(struct env *env, const struct env_ops *ops, int nodes, int64_t reply_limit_ms, struct random random);

/* What a call of the environment returns where it is not served: an ERROR, OUTCOME_REFUSED or false, at once. An
 * implementation puts these into the slots of struct env_ops that it does not fill itself. give_up prints the sentence
 * and exits with ENV_GAVE_UP, here too. */
#define ENV_UNSERVED_DECLARED(result, name, parameters, ...) result env_unserved_##name parameters;
ENV_OPS_WITH_DEFAULT(ENV_UNSERVED_DECLARED, ENV_UNSERVED_DECLARED)
ENV_OPS_EXCEPT_REDIS(ENV_UNSERVED_DECLARED, ENV_UNSERVED_DECLARED)

/* The slots of an environment whose nodes are Redis servers and which hosts no adapter. */
#define ENV_UNSERVED_SLOT(result, name, ...) .name = env_unserved_##name,
#define ENV_UNSERVED_EXCEPT_REDIS                                                                                      \
    ENV_OPS_EXCEPT_REDIS(ENV_UNSERVED_SLOT, ENV_UNSERVED_SLOT).give_up = env_unserved_give_up
