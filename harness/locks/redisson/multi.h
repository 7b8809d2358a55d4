/* Redisson's multi lock, and where its variants differ. */
#ifndef LOCKSTORM_LOCKS_MULTI_H
#define LOCKSTORM_LOCKS_MULTI_H

#include "harness/locks/redisson/redisson.h"

enum { MULTI_PARTS = 3 };

struct multi {
    struct redisson parts[MULTI_PARTS]; /* each has its depth; the first also has the watchdog of all */
    struct key names[MULTI_PARTS];
};

struct multi_rule {
    struct push_try (*attempt)(struct lock *lock, void *what); /* of one part; `what` is its struct redisson */
    bool gives_back_unknown; /* gives all parts back when the outcome of one is unknown */
};

extern const struct multi_rule MULTI_RULE; /* current Redisson's */

enum outcome multi_open(struct lock *lock);
struct lock_grant multi_acquire_by(struct lock *lock, int64_t wait_ms, const struct multi_rule *rule);
enum outcome multi_renew(struct lock *lock);
enum outcome multi_release(struct lock *lock);
void multi_close(struct lock *lock);

#endif
