/* Redisson's multi lock, and where its variants differ. */
#pragma once

#include "harness/locks/redisson/redisson.h"

enum { MULTI_PARTS = 3 };

struct multi {
    struct redisson parts[MULTI_PARTS]; /* each has its depth; the first also has the watchdog of all */
    struct key names[MULTI_PARTS];
};

/* A lock's `variant`. */
struct multi_rule {
    struct push_try (*attempt)(struct lock *lock, void *what); /* of one part; `what` is its struct redisson */
    bool keeps_unknown; /* gives nothing back when the outcome of one part is unknown (a published bug) */
};

enum outcome multi_open(struct lock *lock);
struct lock_grant multi_acquire(struct lock *lock, int64_t wait_ms);
enum outcome multi_renew(struct lock *lock);
enum outcome multi_release(struct lock *lock);
void multi_close(struct lock *lock);

/* A variant writes these fields, its `variant`, and those in which it differs. */
#define MULTI_FIELDS                                                                                                   \
    REDISSON_FIELDS, .state_size = sizeof(struct multi), .open = multi_open, .acquire = multi_acquire,                 \
                     .renew = multi_renew, .is_held = NULL, .release = multi_release, .close = multi_close
