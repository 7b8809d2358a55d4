/* Redlock that extends in the background and reports "acquired" for ever. */
#include "harness/locks/redlock/redlock.h"

const struct lock_type LOCK_REDLOCK_NET_93 = {
    .name = "redlock-net-93",
    .summary = "redlock-renew whose holder learns neither that an extension has failed nor how long its grant is valid",
    .explanation = "As redlock-renew, but the state that the holder sees is set with the grant and never updated.\n"
                   "Breaks: the extensions fail, another client takes the lock, and both believe that they hold it.",
    .source = "RedLock.net issue 93",
    .fixed = "redlock-renew",
    REDLOCK_RENEWED_FIELDS,
    .variant = &(const struct redlock_rule){.now_ns = env_mono_ns,
                                            .checks = true,
                                            .extend = redlock_extend,
                                            .grants_for_ever = true,
                                            .extends_silently = true},
};
