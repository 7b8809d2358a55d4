/* env_limits: what the environment's functions make of a lock's limits in ms, for an implementation that only notes
 * what reaches it. A limit that is longer than any stamp does not count.
 *
 * Prints one JSON line: the number of cases, and of those that were wrong. Exit status: 0 passed, 1 failed. */
#include <stdio.h>

#include "harness/environment/env_ops.h"

static const int64_t NOW_NS = 5000;
static int64_t noted_ns;

static int64_t mono_ns(const struct env *env) {
    return (void)env, NOW_NS;
}

static void sleep_until(struct env *env, int64_t until_ns) {
    (void)env;
    noted_ns = until_ns;
}

static const struct env_reply *note(int64_t limit_ns) {
    static const struct env_reply unknown = {.kind = ENV_REPLY_UNKNOWN};
    noted_ns = limit_ns;
    return &unknown;
}

static const struct env_reply *command(struct env *env, int node, const char *bytes, size_t length, int64_t limit_ns,
                                       bool may_block) {
    (void)env, (void)node, (void)bytes, (void)length, (void)may_block;
    return note(limit_ns);
}

static const struct env_reply *post(struct env *env, int node, const char *path, const char *body, int64_t limit_ns) {
    (void)env, (void)node, (void)path, (void)body;
    return note(limit_ns);
}

static const struct env_reply *of_node(struct env *env, int node, int64_t limit_ns) {
    (void)env, (void)node;
    return note(limit_ns);
}

static const struct env_reply *receive(struct env *env, int64_t limit_ns) {
    return (void)env, note(limit_ns);
}

static bool news(struct env *env, int64_t limit_ns) {
    return (void)env, note(limit_ns)->kind != ENV_REPLY_UNKNOWN;
}

static const struct env_ops OPS = {.mono_ns = mono_ns,
                                   .sleep_until = sleep_until,
                                   .command = command,
                                   .post = post,
                                   .stream_line = of_node,
                                   .message = of_node,
                                   .adapter_receive = receive,
                                   .tree_news = news};

/* Calls each function with this limit. The number of those that did not pass on limit_ns. */
static int wrong_with(struct env *env, int64_t limit_ms, int64_t limit_ns) {
    int wrong = 0;
    env_command_within(env, 0, limit_ms, "PING"), wrong += noted_ns != limit_ns;
    env_command_blocking(env, 0, limit_ms, "PING"), wrong += noted_ns != limit_ns;
    env_post(env, 0, limit_ms, "/", ""), wrong += noted_ns != limit_ns;
    env_stream_line(env, 0, limit_ms), wrong += noted_ns != limit_ns;
    env_message(env, 0, limit_ms), wrong += noted_ns != limit_ns;
    env_adapter_receive(env, limit_ms), wrong += noted_ns != limit_ns;
    env_tree_news(env, limit_ms), wrong += noted_ns != limit_ns;
    if (limit_ms <= 0) return wrong;
    env_sleep(env, limit_ms);
    return wrong + (noted_ns != env_deadline_ns(NOW_NS, limit_ns));
}

int main(void) {
    static const struct {
        int64_t limit_ms, limit_ns;
    } CASES[] = {{-1, INT64_MAX},
                 {0, 0},
                 {1, ENV_NS_PER_MS},
                 {86400000, INT64_C(86400000) * ENV_NS_PER_MS},
                 {INT64_MAX / ENV_NS_PER_MS, INT64_MAX / ENV_NS_PER_MS * ENV_NS_PER_MS},
                 {INT64_MAX / ENV_NS_PER_MS + 1, INT64_MAX},
                 {INT64_MAX / 2, INT64_MAX},
                 {INT64_MAX, INT64_MAX}};
    struct env env = {.ops = &OPS};
    int cases = sizeof CASES / sizeof CASES[0], wrong = 0;
    for (int each = 0; each < cases; each++) wrong += wrong_with(&env, CASES[each].limit_ms, CASES[each].limit_ns);
    printf("{\"cases\": %d, \"wrong\": %d}\n", cases, wrong);
    return wrong == 0 ? 0 : 1;
}
