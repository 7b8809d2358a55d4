/* Admin commands: one command to a server, or to the proxy's control port, on a connection of its own. */
#pragma once

#include "faults/common/fault.h"

enum { ADMIN_REPLY_TEXT = 4096, PROBE_KEY = 128 };

struct admin_reply {
    bool error;                  /* it is an error */
    bool missing;                /* nil */
    long long number;            /* of an integer, or of a text that begins with digits */
    size_t count;                /* items of an array */
    char text[ADMIN_REPLY_TEXT]; /* zero-terminated, cut if too long; one line for each item of an array */
};

/* Sends a command (hiredis' format: %s, %b, %lld) and waits for the reply, at most ADMIN_LIMIT_MS of real time. False
 * with a sentence in the report: the socket cannot be reached, or no reply came. An error is a reply: reply->error. */
bool admin_command(const char *socket, struct admin_reply *reply, struct fault_report *report, const char *format, ...)
    __attribute__((format(printf, 4, 0)));

/* The same with another limit. */
bool admin_command_within(const char *socket, int limit_ms, struct admin_reply *reply, struct fault_report *report,
                          const char *format, ...) __attribute__((format(printf, 5, 0)));

/* The same with arguments as an array; `lengths` NULL: they are zero-terminated. */
bool admin_command_argv(const char *socket, int limit_ms, struct admin_reply *reply, struct fault_report *report,
                        int count, const char **words, const size_t *lengths);

/* As admin_command, but false for an error too, with its text in the report. */
bool admin_command_ok(const char *socket, struct admin_reply *reply, struct fault_report *report, const char *format,
                      ...) __attribute__((format(printf, 4, 0)));

/* Copies a server's setting (CONFIG GET) to `value`. False with a sentence in the report. */
bool admin_setting_read(const char *socket, const char *name, char *value, size_t size, struct fault_report *report);

/* Copies the value of the line "name:value" of a reply (INFO) to `value`; false: there is no such line. */
bool admin_reply_field(const struct admin_reply *reply, const char *name, char *value, size_t size);

/* The key by which the target's fault proves itself at the server. No client uses it. */
void fault_probe_key(const struct fault_target *target, char key[PROBE_KEY]);
