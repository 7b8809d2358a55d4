/* Admin connections: connections of a fault to a server, or to the proxy's control port.
 *
 * One that admin_connection_open has opened bears the name ADMIN_CONNECTION_NAME in the server's list of connections,
 * by which it is told apart from those of clients. For a single command see admin_command.h. */
#pragma once

#include <hiredis/hiredis.h>

#include "faults/common/fault.h"

enum { ADMIN_LIMIT_MS = 60000 };
#define ADMIN_CONNECTION_NAME "lockstorm"

/* Connects to a unix socket. limit_ms of real time bounds the connecting, and each
 * wait for a reply by hiredis' own functions. NULL with a
 * sentence in the report. The caller frees it with redisFree. */
redisContext *admin_connection_reach(const char *socket, int limit_ms, struct fault_report *report);

/* The same, and names the connection. */
redisContext *admin_connection_open(const char *socket, int limit_ms, struct fault_report *report);

/* Sends what was appended (redisAppendCommand) and reads one reply or push, which the caller frees. NULL: none within
 * limit_ms (harness/scheduler/hang_limit.h), or the connection was lost. */
redisReply *admin_connection_read(redisContext *link, int limit_ms);

/* Sends a command (hiredis' format). False with a sentence in the report: there was no reply, or it is an error. */
bool admin_connection_command(redisContext *link, struct fault_report *report, const char *format, ...)
    __attribute__((format(printf, 3, 0)));
