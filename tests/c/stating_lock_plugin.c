/* A plug-in for tests: every client is granted this lock at once.
 *   GRANTED  until when a grant says that it is valid
 *   TOLD     the validity that a renewal announces
 *   ANSWER   what a renewal returns */
#include "lockstorm.h"

#ifndef GRANTED
#define GRANTED 0
#define TOLD 0
#define ANSWER OUTCOME_OK
#endif

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    (void)lock;
    (void)wait_ms;
    return (struct lock_grant){.outcome = OUTCOME_OK, .valid_until_ns = GRANTED};
}

static enum outcome renew(struct lock *lock) {
    env_tell_validity(lock->env, TOLD);
    return ANSWER;
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "states",
    .summary = "states",
    .capacity = 1,
    .acquire = acquire,
    .renew = renew,
};
