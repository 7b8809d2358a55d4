/* A lock that stays valid for its holder, however much time has passed. */
#include "harness/locks/redlock/redlock.h"

const struct lock_type LOCK_AIOREDLOCK_46 = {
    .name = "aioredlock-46",
    .summary = "redlock whose grant says that it is valid until it is released",
    .explanation = "As redlock, but a grant does not state until when it is valid.\n"
                   "Breaks: a holder that works for longer than the lease goes on beside the next holder.",
    .source = "aioredlock issue 46",
    .fixed = "redlock",
    REDLOCK_FIELDS,
    .renew = NULL,
    .variant = &(const struct redlock_rule){.now_ns = env_mono_ns, .checks = true, .grants_for_ever = true},
};
