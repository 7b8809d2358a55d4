/* Admin commands: what a fault asks a server, or the proxy's control port, on a connection of its own.
 *
 * A connection that admin_connection_open has opened bears the name ADMIN_CONNECTION_NAME in the server's list of
 * connections, which distinguishes it from those of clients. */
#pragma once

#include <hiredis/hiredis.h>

#include "faults/common/fault.h"

enum { ADMIN_LIMIT_MS = 60000, ADMIN_REPLY_TEXT = 4096 };
#define ADMIN_CONNECTION_NAME "lockstorm"

/* --- one command --- */

struct admin_reply {
    bool error;                  /* it is an error */
    bool missing;                /* nil */
    long long number;            /* of an integer, or of a text that begins with digits */
    size_t count;                /* items of an array */
    char text[ADMIN_REPLY_TEXT]; /* zero-terminated, cut if too long; one line for each item of an array */
};

/* Sends a command (hiredis' format: %s, %b, %lld) and waits for the reply, at most limit_ms of real time. False with a
 * sentence in the report: the socket cannot be reached, or no reply came. An error is a reply: reply->error. `reply`
 * and `report` may be NULL. */
bool admin_command_within(const char *socket, int limit_ms, struct admin_reply *reply, struct fault_report *report,
                          const char *format, ...) __attribute__((format(printf, 5, 0)));
#define admin_command(socket, reply, report, ...)                                                                      \
    admin_command_within(socket, ADMIN_LIMIT_MS, reply, report, __VA_ARGS__)

/* The same with words, each zero-terminated. */
bool admin_command_words(const char *socket, struct admin_reply *reply, struct fault_report *report, int count,
                         const char **words);

/* As admin_command, but false for an error too, with its text in the report. */
bool admin_command_ok(const char *socket, struct admin_reply *reply, struct fault_report *report, const char *format,
                      ...) __attribute__((format(printf, 4, 0)));

/* Copies a server's setting (CONFIG GET) to `value`. False with a sentence in the report. */
bool admin_setting_read(const char *socket, const char *name, char *value, size_t size, struct fault_report *report);

/* Copies a field of INFO to `value`, "" if this section does not have it. False with a sentence in the report. */
bool admin_info_read(const char *socket, const char *section, const char *field, char *value, size_t size,
                     struct fault_report *report);

/* Whether the server answers a write of the target's probe key with an error that begins with one of these words; the
 * sentence has its answer. A key that was written is deleted. */
bool admin_write_refused(const struct fault_target *target, const char *const *words, struct fault_report *report);

/* Copies the value of the line "name:value" of a reply (INFO) to `value`; false: there is no such line. */
bool admin_reply_field(const struct admin_reply *reply, const char *name, char *value, size_t size);

/* The key by which the target's fault proves itself at the server. No client uses it. */
struct probe_key {
    char text[128];
};
struct probe_key fault_probe_key(const struct fault_target *target);

/* --- a connection --- */

/* Connects to a unix socket. limit_ms of real time bounds the connecting, and each wait for a reply by hiredis' own
 * functions. NULL with a sentence in the report. The caller frees it with redisFree. */
redisContext *admin_connection_reach(const char *socket, int limit_ms, struct fault_report *report);

/* The same within ADMIN_LIMIT_MS, and names the connection. */
redisContext *admin_connection_open(const char *socket, struct fault_report *report);

/* Sends what was appended (redisAppendCommand) and reads one reply or push, which the caller frees. NULL: none within
 * limit_ms (harness/scheduler/hang_limit.h), or the connection was lost. */
redisReply *admin_connection_read(redisContext *link, int limit_ms);

/* Sends a command (hiredis' format). False with a sentence in the report: there was no reply, or it is an error. */
bool admin_connection_command(redisContext *link, struct fault_report *report, const char *format, ...)
    __attribute__((format(printf, 3, 0)));
