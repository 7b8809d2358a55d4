/* Waiting in BLPOP: a string is the lock, a list beside it carries one signal per release. */
#pragma once

#include "harness/locks/common/watchdog.h"
#include "harness/locks/redis/set_nx_px.h"

struct signal_list {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    struct script release; /* KEYS: lock, list; ARGV: owner. 1: released, 0: not its own */
    struct watchdog watchdog;
    char *lock; /* the lock's key; lock->options.resource from signal_list_open on */
    char *list;
    size_t list_length;
};

/* Where the patterns differ. */
struct signal_list_way {
    const char *lock_prefix, *list_prefix; /* in front of the resource */
    const char *release;                   /* the script */
};

enum outcome signal_list_open(struct lock *lock, const struct signal_list_way *way);
void signal_list_close(struct lock *lock);

/* Tries; while refused, waits in BLPOP (for one lease in whole seconds, rounded up, or without a limit if the lock
 * never expires) and tries again. A wait that the caller limits ends exactly then. Checkpoint
 * "between-refusal-and-blpop". UNKNOWN also when BLPOP was not answered. */
struct lock_grant signal_list_acquire(struct lock *lock, int64_t wait_ms, bool expires,
                                      struct lock_grant (*attempt)(struct lock *lock));
enum outcome signal_list_release(struct lock *lock);

/* A lock writes these fields, and then its `open`, its `acquire` and those in which it differs. */
#define SIGNAL_LIST_FIELDS                                                                                             \
    .traits = LOCK_TRAIT_LEASE, .capacity = 1, .waits = LOCK_WAITS_BLOCKING_POP,                                       \
    .state_size = sizeof(struct signal_list), .release = signal_list_release, .close = signal_list_close
