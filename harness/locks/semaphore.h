/* Redisson's semaphore, for those that differ from it. */
#ifndef LOCKSTORM_LOCKS_SEMAPHORE_H
#define LOCKSTORM_LOCKS_SEMAPHORE_H

#include "harness/locks/redisson.h"

struct semaphore {
    struct key channel;
    struct script acquire;
    struct script release;
};

enum outcome semaphore_open(struct lock *lock);
/* One attempt; `what` is the struct semaphore. */
struct push_try semaphore_attempt(struct lock *lock, void *what);
enum outcome semaphore_release(struct lock *lock);
void semaphore_close(struct lock *lock);

#endif
