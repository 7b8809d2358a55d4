/* No lock at all: the unprotected control. Here a fault affects the workload, not a lock. */
#include "harness/locks/common/lock.h"

static struct lock_grant none_acquire(struct lock *lock, int64_t wait_ms) {
    (void)lock, (void)wait_ms;
    return (struct lock_grant){.outcome = OUTCOME_OK};
}

const struct lock_type LOCK_NONE = {
    .name = "none",
    .summary = "no lock: every client is granted at once",
    .explanation =
        "Acquiring always succeeds and costs nothing. It promises nothing and breaks under plain contention, which\n"
        "is its use: a scenario that damages nothing here would prove nothing about a lock.",
    .source = "the control of every experiment",
    .capacity = 1, /* what its user wanted */
    .acquire = none_acquire,
};
