#include "harness/locks/script.h"

#include <stdarg.h>
#include <string.h>

enum outcome script_load(struct env *env, int node, struct script *script) {
    const struct env_reply *reply = env_command(env, node, "SCRIPT LOAD %s", script->source);
    if (reply->kind != ENV_REPLY_STRING || reply->length != sizeof script->hash - 1) return OUTCOME_UNKNOWN;
    memcpy(script->hash, reply->text, sizeof script->hash);
    return OUTCOME_OK;
}

const struct env_reply *script_run(struct env *env, int node, struct script *script, const char *format, ...) {
    va_list arguments;
    const struct env_reply *reply = NULL;
    if (script->hash[0]) {
        va_start(arguments, format);
        reply = env_command_after(env, node, (const char *const[]){"EVALSHA", script->hash}, 2, format, arguments);
        va_end(arguments);
        if (reply->kind != ENV_REPLY_ERROR || strncmp(reply->text, "NOSCRIPT", 8) != 0) return reply;
    }
    va_start(arguments, format);
    reply = env_command_after(env, node, (const char *const[]){"EVAL", script->source}, 2, format, arguments);
    va_end(arguments);
    return reply;
}
