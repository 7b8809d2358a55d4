/* Cost: how many operations of the history a grant took. Reported, never judged. */
#include <string.h>

#include "checkers/engine/checker.h"

static void cost_finish(struct checking *my) {
    const struct check *check = my->check;
    double grants = (double)check->granted;
    uint64_t attempts = check->seen[HISTORY_ACQUIRE_INVOKE], renewals = check->seen[HISTORY_RENEW_INVOKE],
             releases = check->seen[HISTORY_RELEASE_INVOKE],
             accesses = check->seen[HISTORY_STORE_READ] + check->seen[HISTORY_STORE_WRITE];
    verdict_decide(&my->verdict, false, "costs are told, not judged");
    if (check->granted == 0) return;
    const struct verdict_measure measures[] = {
        {"operations_per_grant", (double)(attempts + renewals + releases) / grants},
        {"attempts_per_grant", (double)attempts / grants},
        {"refused_per_grant", (double)check->refused / grants},
        {"unknown_per_grant", (double)check->timed_out / grants},
        {"renewals_per_grant", (double)renewals / grants},
        {"accesses_per_grant", (double)accesses / grants},
    };
    memcpy(my->verdict.measures, measures, sizeof measures);
}

const struct checker CHECKER_COST = {
    .property = "cost",
    .advisory = true,
    .finish = cost_finish,
};
