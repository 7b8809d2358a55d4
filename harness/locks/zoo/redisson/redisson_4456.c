/* Several locks as one. Some of them stay behind when the acquire is cut short. */
#include "harness/locks/redisson/multi.h"

extern const struct lock_type LOCK_REDISSON_4456;

static struct lock_grant redisson_4456_acquire(struct lock *lock, int64_t wait_ms) {
    static const struct multi_rule rule = {.attempt = redisson_hash_attempt, .gives_back_unknown = false /* the bug */};
    return multi_acquire_by(lock, wait_ms, &rule);
}

const struct lock_type LOCK_REDISSON_4456 = {
    .name = "redisson-4456",
    .summary = "multi whose acquire, cut short between two of its locks, keeps those that it has",
    .explanation =
        "As multi, but an acquire that ends without an answer, as by an interrupt, skips the code that gives back\n"
        "the locks that it has by then.\n"
        "Breaks: the watchdog renews them as long as the process lives, and no client knows of them.",
    .source = "Redisson issue 4456",
    .fixed = "multi",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct multi),
    .open = multi_open,
    .acquire = redisson_4456_acquire,
    .renew = multi_renew,
    .release = multi_release,
    .close = multi_close,
};
