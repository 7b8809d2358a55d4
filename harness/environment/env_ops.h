/* What an implementation of the environment provides; env.h describes the functions that call it. Limits are durations
 * in ns here, INT64_MAX: none. No slot is NULL: env_unserved.h has functions for what an implementation does not serve.
 * Only implementations and env_ops.c include this. */
#ifndef LOCKSTORM_ENV_OPS_H
#define LOCKSTORM_ENV_OPS_H

#include "harness/environment/env.h"

struct env_ops {
    int (*nodes)(const struct env *);
    /* `command` is one encoded RESP command; may_block: as env_command_blocking. */
    const struct env_reply *(*command)(struct env *, int node, const char *command, size_t length, int64_t limit_ns,
                                       bool may_block);
    const struct env_reply *(*query)(struct env *, int node, const char *statement, const char *const *parameters,
                                     size_t count, int64_t limit_ns, bool may_block);
    const struct env_reply *(*post)(struct env *, int node, const char *path, const char *body, int64_t limit_ns);
    enum outcome (*stream)(struct env *, int node, const char *path, const char *body);
    const struct env_reply *(*stream_line)(struct env *, int node, int64_t limit_ns);
    void (*stream_end)(struct env *, int node);
    enum outcome (*session_open)(struct env *, int64_t timeout_ms,
                                 void (*changed)(struct env *, enum env_session_state, void *), void *argument);
    enum env_session_state (*session_state)(struct env *);
    void (*session_end)(struct env *);
    const struct env_reply *(*tree)(struct env *, enum env_tree_verb, const char *path);
    bool (*tree_news)(struct env *, int64_t limit_ns);
    bool (*adapter_send)(struct env *, const char *line);
    int64_t (*adapter_mono_ns)(struct env *, int64_t adapter_ns);
    const struct env_reply *(*adapter_receive)(struct env *, int64_t limit_ns);
    const char *(*node_address)(const struct env *, int node);
    void (*give_up)(struct env *, const char *sentence); /* does not return */
    enum outcome (*subscribe)(struct env *, int node, const char *channel, size_t length);
    void (*unsubscribe)(struct env *, int node, const char *channel, size_t length);
    const struct env_reply *(*message)(struct env *, int node, int64_t limit_ns);
    int64_t (*reply_limit_ms)(const struct env *);
    int64_t (*mono_ns)(const struct env *);
    int64_t (*wall_ns)(const struct env *);
    void (*sleep_until)(struct env *, int64_t mono_ns);
    uint64_t (*random)(struct env *);
    void (*checkpoint)(struct env *, const char *name);
    void (*tell_validity)(struct env *, int64_t valid_until_ns);
    void (*tell_answers)(struct env *, int asked, int64_t answers, enum outcome outcome);
    int64_t (*attempt_ns)(const struct env *);
    bool (*watchdog_start)(struct env *, void (*run)(struct env *, void *), void *argument);
    void (*watchdog_stop)(struct env *);
    bool (*watchdog_stopping)(const struct env *);
};

/* The stamp limit_ns after now_ns; INT64_MAX: never. */
static inline int64_t env_deadline_ns(int64_t now_ns, int64_t limit_ns) {
    return limit_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + limit_ns;
}

/* The first member of every implementation's own structure. */
struct env {
    const struct env_ops *ops;
};

/* Gives an environment its operations. */
void env_begin(struct env *env, const struct env_ops *ops);

#endif
