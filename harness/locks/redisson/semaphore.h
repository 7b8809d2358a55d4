/* Redisson's semaphore, for its variants. */
#ifndef LOCKSTORM_LOCKS_SEMAPHORE_H
#define LOCKSTORM_LOCKS_SEMAPHORE_H

#include "harness/locks/redisson/redisson.h"

struct redisson_semaphore {
    struct key channel;
    struct script acquire;
    struct script release;
};

enum outcome semaphore_open(struct lock *lock);
/* One attempt; `what` is the struct redisson_semaphore. */
struct push_try semaphore_attempt(struct lock *lock, void *what);
enum outcome semaphore_release(struct lock *lock);
void semaphore_close(struct lock *lock);

#endif
