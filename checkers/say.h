/* The verdict as one JSON object. */
#ifndef LOCKSTORM_CHECKERS_SAY_H
#define LOCKSTORM_CHECKERS_SAY_H

#include <jansson.h>

#include "checkers/policy.h"

enum { EXIT_HOLDS = 0, EXIT_VIOLATED = 1, EXIT_BAD = 2, EXIT_INCONCLUSIVE = 3 };

/* What decides the exit status; nothing chosen: every property that applies and is not advisory. */
struct demand {
    bool chosen;
    bool required[CHECKERS_MOST];
};

/* The verdict under a policy; with `all`, also under each other one. The caller frees it. *status: of the first. */
json_t *say(const struct readings *readings, const struct demand *demand, struct policy policy, bool all, int *status);

#endif
