#include "harness/environment/env.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/environment/env_ops.h"
#include "harness/environment/redis_command.h"

enum { SENTENCE_ROOM = 512 };

/* A plug-in may call any function of env.h: a NULL slot would end the process that hosts it. */
void env_begin(struct env *env, const struct env_ops *ops, int nodes, int64_t reply_limit_ms, struct random random) {
    void (*slots[sizeof *ops / sizeof(void (*)(void))])(void);
    memcpy(slots, ops, sizeof slots);
    for (size_t each = 0; each < sizeof slots / sizeof *slots; each++) assert(slots[each]);
    *env = (struct env){ops, nodes, reply_limit_ms, random, {NULL, NULL, NULL}};
}

void env_tell_validity(struct env *env, int64_t valid_until_ns) {
    if (env->hearer.holder) env->hearer.announce_validity(env->hearer.holder, valid_until_ns);
}

void env_tell_answers(struct env *env, int asked, int64_t answers, enum outcome outcome) {
    if (env->hearer.holder) env->hearer.record_answers(env->hearer.holder, asked, answers, outcome);
}

int env_nodes(const struct env *env) {
    return env->nodes;
}

int64_t env_reply_limit_ms(const struct env *env) {
    return env->reply_limit_ms;
}

uint64_t env_random(struct env *env) {
    return random_next(&env->random);
}

uint64_t env_random_below(struct env *env, uint64_t bound) {
    return random_below(&env->random, bound);
}

/* Below 0, or longer than any stamp: no limit. */
static int64_t limit_ns_of(int64_t limit_ms) {
    return limit_ms < 0 || limit_ms > INT64_MAX / ENV_NS_PER_MS ? INT64_MAX : limit_ms * ENV_NS_PER_MS;
}

/* Formats one command behind `words`, and sends it. */
static const struct env_reply *send(struct env *env, int node, int64_t limit_ms, bool may_block,
                                    const char *const *words, size_t count, const char *format, va_list arguments) {
    size_t length;
    char *command = redis_command_format(words, count, format, arguments, &length);
    const struct env_reply *reply = env->ops->command(env, node, command, length, limit_ns_of(limit_ms), may_block);
    free(command);
    return reply;
}

const struct env_reply *env_command(struct env *env, int node, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const struct env_reply *reply = send(env, node, env_reply_limit_ms(env), false, NULL, 0, format, arguments);
    va_end(arguments);
    return reply;
}

const struct env_reply *env_command_within(struct env *env, int node, int64_t limit_ms, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const struct env_reply *reply = send(env, node, limit_ms, false, NULL, 0, format, arguments);
    va_end(arguments);
    return reply;
}

const struct env_reply *env_command_after(struct env *env, int node, int64_t limit_ms, const char *const *words,
                                          size_t count, const char *format, va_list arguments) {
    return send(env, node, limit_ms, false, words, count, format, arguments);
}

const struct env_reply *env_command_blocking(struct env *env, int node, int64_t limit_ms, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const struct env_reply *reply = send(env, node, limit_ms, true, NULL, 0, format, arguments);
    va_end(arguments);
    return reply;
}

const struct env_reply *env_query(struct env *env, int node, const char *statement, const char *const *parameters,
                                  size_t count) {
    return env->ops->query(env, node, statement, parameters, count, env_reply_limit_ms(env) * ENV_NS_PER_MS, false);
}

const struct env_reply *env_query_blocking(struct env *env, int node, const char *statement,
                                           const char *const *parameters, size_t count) {
    return env->ops->query(env, node, statement, parameters, count, INT64_MAX, true);
}

const struct env_reply *env_post(struct env *env, int node, int64_t limit_ms, const char *path, const char *body) {
    return env->ops->post(env, node, path, body, limit_ns_of(limit_ms));
}

const struct env_reply *env_stream_line(struct env *env, int node, int64_t limit_ms) {
    return env->ops->stream_line(env, node, limit_ns_of(limit_ms));
}

bool env_tree_news(struct env *env, int64_t limit_ms) {
    return env->ops->tree_news(env, limit_ns_of(limit_ms));
}

const struct env_reply *env_adapter_receive(struct env *env, int64_t limit_ms) {
    return env->ops->adapter_receive(env, limit_ns_of(limit_ms));
}

void env_give_up(struct env *env, const char *format, ...) {
    char sentence[SENTENCE_ROOM];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    env->ops->give_up(env, sentence);
    abort();
}

const struct env_reply *env_message(struct env *env, int node, int64_t limit_ms) {
    return env->ops->message(env, node, limit_ns_of(limit_ms));
}

void env_sleep(struct env *env, int64_t duration_ms) {
    if (duration_ms > 0) env->ops->sleep_until(env, env_deadline_ns(env_mono_ns(env), limit_ns_of(duration_ms)));
}

/* The operations that only pass their arguments on. */
#define ENV_PASSED_ON(result, name, parameters, arguments, ...)                                                        \
    result env_##name parameters {                                                                                     \
        return env->ops->name arguments;                                                                               \
    }
#define ENV_WRITTEN_OUT(...)
ENV_OPS_ALL(ENV_PASSED_ON, ENV_WRITTEN_OUT)

/* --- what is not served --- */

static const struct env_reply *unserved(const char *text) {
    static _Thread_local struct env_reply reply;
    reply = (struct env_reply){.kind = ENV_REPLY_ERROR, .text = text, .length = strlen(text)};
    return &reply;
}

static void exit_with(const char *sentence) {
    fprintf(stderr, "%s\n", sentence);
    exit(ENV_GAVE_UP);
}

/* The result does not depend on what was asked for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ENV_UNSERVED(result, name, parameters, arguments, value)                                                       \
    result env_unserved_##name parameters {                                                                            \
        return value;                                                                                                  \
    }
ENV_OPS_WITH_DEFAULT(ENV_UNSERVED, ENV_UNSERVED)
ENV_OPS_EXCEPT_REDIS(ENV_UNSERVED, ENV_UNSERVED)
