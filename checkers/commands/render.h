/* The verdict as one JSON object. */
#pragma once

#include <jansson.h>

#include "checkers/engine/policy.h"

/* Which properties decide the exit status; if none is chosen, those that apply and are not advisory. */
struct demand {
    bool chosen;
    bool required[CHECKERS_MOST];
};

/* Adds a comma-separated list of properties, which it changes; '-' and '_' are the same. False with a reason: there is
 * no such property. */
bool demand_parse(struct demand *demand, char *list, struct history_error *error);

/* The verdict under a policy; with `all`, also in short under every policy. The caller releases it. *status: the exit
 * status under `policy`. */
json_t *render_verdict(const struct readings *readings, const struct demand *demand, struct policy policy, bool all,
                       int *status);
