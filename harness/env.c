#include "harness/env.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/env_ops.h"

/* Formats one command, puts `words` in front of it (the array header counts them in), and sends it. */
static const struct env_reply *send(struct env *env, int node, int64_t limit_ms, bool may_block,
                                    const char *const *words, size_t count, const char *format, va_list arguments) {
    char *rest = NULL, *command = NULL;
    size_t length = 0;
    int formatted = redisvFormatCommand(&rest, format, arguments);
    FILE *stream = open_memstream(&command, &length);
    if (formatted < 0 || !stream) abort(); /* a format that a programmer got wrong, or no memory */
    const char *body = memchr(rest, '\n', (size_t)formatted);
    fprintf(stream, "*%zu\r\n", strtoul(rest + 1, NULL, 10) + count);
    for (size_t each = 0; each < count; each++) fprintf(stream, "$%zu\r\n%s\r\n", strlen(words[each]), words[each]);
    fwrite(body + 1, 1, (size_t)formatted - (size_t)(body + 1 - rest), stream);
    fclose(stream);
    int64_t limit_ns = limit_ms < 0 ? INT64_MAX : limit_ms * ENV_NS_PER_MS;
    const struct env_reply *reply = env->ops->command(env, node, command, length, limit_ns, may_block);
    free(command);
    redisFreeCommand(rest);
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

enum outcome env_subscribe(struct env *env, int node, const char *channel, size_t length) {
    return env->ops->subscribe(env, node, channel, length);
}

void env_unsubscribe(struct env *env, int node, const char *channel, size_t length) {
    env->ops->unsubscribe(env, node, channel, length);
}

const struct env_reply *env_message(struct env *env, int node, int64_t limit_ms) {
    return env->ops->message(env, node, limit_ms < 0 ? INT64_MAX : limit_ms * ENV_NS_PER_MS);
}

int env_nodes(const struct env *env) {
    return env->ops->nodes(env);
}

int64_t env_reply_limit_ms(const struct env *env) {
    return env->ops->reply_limit_ms(env);
}

int64_t env_mono_ns(const struct env *env) {
    return env->ops->mono_ns(env);
}

int64_t env_wall_ns(const struct env *env) {
    return env->ops->wall_ns(env);
}

void env_sleep(struct env *env, int64_t duration_ms) {
    if (duration_ms > 0) env->ops->sleep_until(env, env_mono_ns(env) + duration_ms * ENV_NS_PER_MS);
}

uint64_t env_random(struct env *env) {
    return env->ops->random(env);
}

uint64_t env_random_below(struct env *env, uint64_t bound) {
    return (uint64_t)(((__uint128_t)env_random(env) * bound) >> 64);
}

void env_checkpoint(struct env *env, const char *name) {
    env->ops->checkpoint(env, name);
}

void env_tell_validity(struct env *env, int64_t valid_until_ns) {
    env->ops->tell_validity(env, valid_until_ns);
}

bool env_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument) {
    return env->ops->watchdog_start(env, run, argument);
}

void env_watchdog_stop(struct env *env) {
    env->ops->watchdog_stop(env);
}

bool env_watchdog_stopping(const struct env *env) {
    return env->ops->watchdog_stopping(env);
}
