#include "harness/locks/common/script.h"

#include <stdarg.h>
#include <string.h>

enum outcome script_load(struct env *env, int node, struct script *script) {
    const struct env_reply *reply = env_command(env, node, "SCRIPT LOAD %s", script->source);
    if (reply->kind != ENV_REPLY_STRING || reply->length != sizeof script->hash - 1) return OUTCOME_UNKNOWN;
    memcpy(script->hash, reply->text, sizeof script->hash);
    return OUTCOME_OK;
}

enum outcome script_load_all(struct env *env, int node, struct script *const *scripts, size_t count) {
    enum outcome loaded = OUTCOME_OK;
    for (size_t each = 0; each < count && loaded == OUTCOME_OK; each++) loaded = script_load(env, node, scripts[each]);
    return loaded;
}

static const struct env_reply *script_evaluate(struct env *env, int node, int64_t limit_ms, struct script *script,
                                               const char *format, va_list arguments) {
    if (script->hash[0]) {
        va_list again;
        va_copy(again, arguments);
        const char *const words[] = {"EVALSHA", script->hash};
        const struct env_reply *reply = env_command_after(env, node, limit_ms, words, 2, format, again);
        va_end(again);
        if (reply->kind != ENV_REPLY_ERROR || strncmp(reply->text, "NOSCRIPT", 8) != 0) return reply;
    }
    const char *const words[] = {"EVAL", script->source};
    return env_command_after(env, node, limit_ms, words, 2, format, arguments);
}

const struct env_reply *script_run_within(struct env *env, int node, int64_t limit_ms, struct script *script,
                                          const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const struct env_reply *reply = script_evaluate(env, node, limit_ms, script, format, arguments);
    va_end(arguments);
    return reply;
}

const struct env_reply *script_run(struct env *env, int node, struct script *script, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const struct env_reply *reply = script_evaluate(env, node, env_reply_limit_ms(env), script, format, arguments);
    va_end(arguments);
    return reply;
}

enum outcome script_outcome(const struct env_reply *reply) {
    if (reply->kind != ENV_REPLY_INTEGER) return OUTCOME_UNKNOWN;
    return reply->integer == 1 ? OUTCOME_OK : OUTCOME_REFUSED;
}
