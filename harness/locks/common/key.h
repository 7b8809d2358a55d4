/* A key made of parts: "before{name}after", any bytes. The braces keep all keys of one lock in one slot of
 * a Redis Cluster; a name that has braces of its own gets none, as in Redisson. */
#ifndef LOCKSTORM_LOCKS_KEY_H
#define LOCKSTORM_LOCKS_KEY_H

#include <stddef.h>

struct key {
    char *bytes; /* on the heap, not terminated; freed by key_free */
    size_t length;
};

struct key key_make(const char *before, const char *name, size_t length, const char *after);
void key_free(struct key *key);

#endif
