/* A release that is sent again, and counts again. */
#include "harness/locks/redisson/redisson.h"

static const struct env_reply *redisson_4871_unlock(struct redisson *self, struct lock *lock, const char *request) {
    (void)request;
    char another[KEY_RANDOM + 1];
    key_draw(lock->env, another); /* the bug: a repetition cannot be told from another release */
    return redisson_hash_unlock(self, lock, another);
}

const struct lock_type LOCK_REDISSON_4871 = {
    .name = "redisson-4871",
    .summary = "pubsub whose release, sent again after its answer was lost, is done again",
    .explanation =
        "As pubsub, but a release has no name under which its answer is stored, so the script that is sent again\n"
        "lowers the count again.\n"
        "Breaks: a client that held the lock twice no longer holds it after one release, and does not know; one\n"
        "that held it once is answered that it did not hold it.",
    .source = "Redisson issues 4871 and 5000 (fixed in 3.24.1)",
    .fixed = "pubsub",
    REDISSON_FIELDS,
    .variant = &(const struct redisson_rule){.unlock = redisson_4871_unlock},
};
