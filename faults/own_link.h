/* A connection of a fault's own that lasts: for what ask.h cannot do with a new one for every question.
 *
 * In the server's list of connections it bears the name by which those that are no client's are known. */
#ifndef LOCKSTORM_FAULTS_OWN_LINK_H
#define LOCKSTORM_FAULTS_OWN_LINK_H

#include <hiredis/hiredis.h>

#include "faults/fault.h"

#define OWN_NAME "lockstorm"

/* Connected within limit_ms, which also bounds the wait for each reply; NULL with a sentence. The caller frees it with
 * redisFree. */
redisContext *own_link_open(const char *socket, int limit_ms, struct fault_report *report);

/* Whether a command was not refused; the refusal, or why there was no answer, is in the report. */
bool own_link_do(redisContext *link, struct fault_report *report, const char *format, ...)
    __attribute__((format(printf, 3, 0)));

#endif
