/* The verdict on a whole input: each of its objects judged by one model, and what all of them come to. */
#pragma once

#include "checkers/linearizability/linearizable.h"

/* An object that is not linearizable, and why. */
struct linearizability_violation {
    const struct concurrent_object *object; /* the source's */
    struct linearizable_result result;
};

struct linearizability_verdict {
    enum verdict_status status;
    char reason[256];                                           /* inconclusive: why */
    uint64_t violated;                                          /* objects */
    struct linearizability_violation violations[EVIDENCE_KEPT]; /* of the first objects */
    int violation_count;
    uint64_t operations, unknown; /* that may have happened; of these, of unknown outcome */
    uint64_t configurations;      /* the most that stood side by side for any object */
};

/* Judges within the limits of the source. False: an object is not what the model is about, `verdict->reason` says why.
 */
bool linearizability_judge(struct operation_source *source, const struct linearizable_settings *settings,
                           struct linearizability_verdict *verdict);
