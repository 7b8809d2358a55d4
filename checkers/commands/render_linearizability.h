/* The verdict on linearizability as one JSON object. */
#pragma once

#include <jansson.h>

#include "checkers/linearizability/verdict.h"

/* How operations of ambiguous outcome were read, by enum release_reading and by whether an acquire that timed out never
 * happened: as on the command line. Both end with NULL. */
extern const char *const RELEASE_READING[];
extern const char *const TIMEOUT_READING[];

/* What was judged, by which model, what came of it, and what it cost. */
struct linearizability_report {
    const struct operation_source *source;
    const struct linearizable_settings *settings;
    const struct linearizability_verdict *verdict;
    double read_s, decide_s;
    int exit; /* status */
};

/* The caller releases it. */
json_t *render_linearizability(const struct linearizability_report *report);
