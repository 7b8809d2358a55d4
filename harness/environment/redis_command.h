/* A command to a redis-server, encoded in RESP.
 *
 * The format is that of hiredis' redisFormatCommand. Most formats of locks have only whole words of %s, %b (bytes and
 * their size_t), %d, %u and %lld; these are encoded here, in a fraction of the time that hiredis takes. All others are
 * given to hiredis. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* Returns the command, which the caller frees, and its length: the zero-terminated words `before`, then the formatted
 * ones. A format that hiredis refuses ends the process. */
char *redis_command_format(const char *const *before, size_t before_count, const char *format, va_list arguments,
                           size_t *length);
