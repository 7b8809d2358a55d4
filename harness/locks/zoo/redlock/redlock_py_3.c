/* Redlock with one sign wrong in its validity. */
#include "harness/locks/redlock/redlock.h"

const struct lock_type LOCK_REDLOCK_PY_3 = {
    .name = "redlock-py-3",
    .summary = "redlock whose validity is lease - (elapsed - drift): the drift is added",
    .explanation = "As redlock, but the term that should make the validity shorter than the lease makes it longer.\n"
                   "Breaks: for 1 % of the lease and 2 ms the holder believes in a lock that has expired.",
    .source = "redlock-py pull request 3",
    .fixed = "redlock",
    REDLOCK_FIELDS,
    .renew = NULL,
    .variant = &(const struct redlock_rule){.now_ns = env_mono_ns, .checks = true, .adds_drift = true},
};
