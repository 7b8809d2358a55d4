/* Redisson's semaphore, for its variants. */
#pragma once

#include "harness/locks/redisson/redisson.h"

struct redisson_semaphore {
    struct key channel;
    struct script acquire;
    struct script release;
};

enum outcome semaphore_open(struct lock *lock);
/* One attempt; `what` is the struct redisson_semaphore. */
struct push_try semaphore_attempt(struct lock *lock, void *what);
struct lock_grant semaphore_acquire(struct lock *lock, int64_t wait_ms);
enum outcome semaphore_release(struct lock *lock);
void semaphore_close(struct lock *lock);
/* Makes the key with the number of free permits, unless it exists. UNKNOWN without an answer. */
enum outcome semaphore_make(struct lock *lock);

/* A variant writes these fields, and then those in which it differs. */
#define SEMAPHORE_FIELDS                                                                                               \
    .capacity = LOCK_CAPACITY_ASKED, .waits = LOCK_WAITS_PUSH, .state_size = sizeof(struct redisson_semaphore),        \
    .open = semaphore_open, .acquire = semaphore_acquire, .release = semaphore_release, .close = semaphore_close
