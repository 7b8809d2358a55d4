/* Asking a server, or the proxy, one question on a connection of its own. For faults only. */
#ifndef LOCKSTORM_FAULTS_ASK_H
#define LOCKSTORM_FAULTS_ASK_H

#include "faults/fault.h"

enum { ASK_LIMIT_MS = 5000, ASK_ANSWER = 4096, PROBE_KEY = 128 };

struct answer {
    bool error;            /* the other side refused */
    bool missing;          /* nil */
    long long number;      /* of an integer reply, or of a text that begins with digits */
    size_t count;          /* items of an array */
    char text[ASK_ANSWER]; /* zero-terminated, cut; the items of an array stand in lines */
};

/* The format is hiredis' (%s, %b, %lld). Waits at most ASK_LIMIT_MS of real time. False with a sentence in the report:
 * the socket cannot be reached, or no answer came. A refusal is an answer: answer->error. */
bool ask(const char *socket, struct answer *answer, struct fault_report *report, const char *format, ...)
    __attribute__((format(printf, 4, 0)));

/* The same with a limit of its own. */
bool ask_within(const char *socket, int limit_ms, struct answer *answer, struct fault_report *report,
                const char *format, ...) __attribute__((format(printf, 5, 0)));

/* The same with arguments as an array; `lengths` NULL: zero-terminated. */
bool ask_words(const char *socket, int limit_ms, struct answer *answer, struct fault_report *report, int count,
               const char **words, const size_t *lengths);

/* Asks and takes a refusal for a failure too; the refusal's text is in the report. */
bool ask_good(const char *socket, struct answer *answer, struct fault_report *report, const char *format, ...)
    __attribute__((format(printf, 4, 0)));

/* The key by which a fault of this name proves something at the target: the server may have it, and no client uses it.
 */
void probe_key(const struct fault_target *target, const char *fault, char key[PROBE_KEY]);

/* The value of a server's setting (CONFIG GET), copied to `value`. False with a sentence: it has none, or does not say.
 */
bool ask_setting(const char *socket, const char *name, char *value, size_t size, struct fault_report *report);

/* The value of a line "name:value" of an answer (INFO), copied to `value`; false: there is none. */
bool answer_line(const struct answer *answer, const char *name, char *value, size_t size);

#endif
