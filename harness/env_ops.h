/* What an implementation of the environment provides. Only implementations and env.c include this. */
#ifndef LOCKSTORM_ENV_OPS_H
#define LOCKSTORM_ENV_OPS_H

#include "harness/env.h"

struct env_ops {
    int (*nodes)(const struct env *);
    /* `command` is one encoded RESP command; limit_ns is a duration; may_block as in env_command_blocking. */
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
    bool (*watchdog_start)(struct env *, void (*run)(struct env *, void *), void *argument);
    void (*watchdog_stop)(struct env *);
    bool (*watchdog_stopping)(const struct env *);
};

/* The first member of every implementation's own structure. */
struct env {
    const struct env_ops *ops;
};

#endif
