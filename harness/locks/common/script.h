/* Lua scripts on a node: sent by their hash, and in full when the node has lost them (NOSCRIPT). */
#pragma once

#include <stdarg.h>

#include "harness/environment/env.h"

struct script {
    const char *source;
    char hash[41]; /* empty until the node has answered it */
};

/* Loads it on a node; the node answers with its hash. OK, or UNKNOWN without an answer. */
enum outcome script_load(struct env *env, int node, struct script *script);
/* The same for several, until one has no answer. */
enum outcome script_load_all(struct env *env, int node, struct script *const *scripts, size_t count);

/* Runs it, waiting at most limit_ms for the answer. `format` is what follows the script in EVAL: the number of keys,
 * keys, arguments ("1 %b %s"). A script that the node has lost did not run before it is sent in full, so nothing
 * happens twice. */
const struct env_reply *script_run_within(struct env *env, int node, int64_t limit_ms, struct script *script,
                                          const char *format, ...) __attribute__((format(printf, 5, 0)));

/* The same, waiting as long as for an ordinary command. */
const struct env_reply *script_run(struct env *env, int node, struct script *script, const char *format, ...)
    __attribute__((format(printf, 4, 0)));

/* A script's reply as an outcome: 1 done, 0 the key is gone or another owner's; anything else is unknown. */
enum outcome script_outcome(const struct env_reply *reply);
