/* Many resources on a few locks: each resource belongs to one of SHARDS spin locks, by the hash of its name. */
#include <stdio.h>

#include "harness/locks/redisson/spin.h"

enum { SHARDS = 16 };

struct sharded_spin {
    struct redisson base; /* first: the shared functions use it as the lock's state */
    char shard[32];
};

/* FNV-1a. */
static uint32_t hash(const char *bytes, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t each = 0; each < length; each++) hash = (hash ^ (unsigned char)bytes[each]) * 16777619u;
    return hash;
}

static enum outcome sharded_spin_open(struct lock *lock) {
    struct sharded_spin *self = lock->state;
    uint32_t shard = hash(lock->options.resource, lock->options.resource_length) % SHARDS;
    int length = snprintf(self->shard, sizeof self->shard, "lock-shard:%u", shard);
    return redisson_hash_open(&self->base, lock->env, self->shard, (size_t)length, &SPIN_RULE);
}

const struct lock_type LOCK_SHARDED_SPIN = {
    .name = "sharded-spin",
    .summary = "the resource hashed onto one of 16 shards, a spin lock each",
    .explanation =
        "The FNV-1a hash of the resource's name chooses one of 16 keys; that key is a lock as in spin. There are\n"
        "never more than 16 locks, however many resources there are.\n"
        "Promises: as spin, for every resource; two resources may exclude each other only because of their names,\n"
        "and a client that wants two of one shard takes the same lock twice.\n"
        "Costs: as spin, and the waiting for clients that use other resources of the shard.\n"
        "Breaks: where spin does, and then for every resource of the shard; two clients that do not agree on the\n"
        "number of shards do not exclude each other at all.",
    .source = "lock striping (Goetz et al. 2006, Java Concurrency in Practice, 11.4.3; Guava's Striped) on Redisson's "
              "spin lock",
    SPIN_FIELDS,
    .state_size = sizeof(struct sharded_spin),
    .open = sharded_spin_open,
};
