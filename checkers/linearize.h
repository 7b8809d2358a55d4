/* One file of any form, judged by one model: reads it, decides, and says it as JSON. */
#ifndef LOCKSTORM_CHECKERS_LINEARIZE_H
#define LOCKSTORM_CHECKERS_LINEARIZE_H

#include <jansson.h>

#include "checkers/linearizable.h"

enum linearize_form {
    LINEARIZE_ANY, /* by its first bytes */
    LINEARIZE_RECORDED,
    LINEARIZE_JSON_LINES,
    LINEARIZE_EDN,
    LINEARIZE_ATLAS,
};

struct linearize_settings {
    struct linearizable_settings model;
    struct policies policies;
    bool initial_given; /* else a register begins as nil, in lockstorm's own histories as 0 */
    enum linearize_form form;
    uint64_t memory_bytes; /* 0: no limit */
    int64_t time_ns;
};

enum { LINEARIZE_HOLDS = 0, LINEARIZE_VIOLATED = 1, LINEARIZE_BAD = 2, LINEARIZE_INCONCLUSIVE = 3 };

/* Returns the exit status. *said is the verdict, which the caller releases; with LINEARIZE_BAD it is NULL, and *error
 * says why, with the byte or line where there is one. */
int linearize_file(const char *path, const struct linearize_settings *settings, json_t **said,
                   struct history_error *error);

/* Writes the operations to `out` instead: what kinds there are, the model decides. */
enum linearize_output { LINEARIZE_TO_EDN, LINEARIZE_TO_PORCUPINE };
bool linearize_write(const char *path, const struct linearize_settings *settings, enum linearize_output output,
                     FILE *out, struct history_error *error);

#endif
