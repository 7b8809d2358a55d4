/* A key made of parts: "before{name}after", any bytes. The braces keep all keys of one lock in one slot of
 * a Redis Cluster; a name that has braces of its own gets none, as in Redisson. */
#pragma once

#include <stddef.h>

#include "harness/environment/env.h"

struct key {
    char *bytes; /* on the heap, not terminated; freed by key_free */
    size_t length;
};

struct key key_make(const char *before, const char *name, size_t length, const char *after);
void key_free(struct key *key);

/* `before`, the name in hexadecimal, `after`: for a service whose names may not hold any byte. The caller frees. */
char *key_hexadecimal(const char *before, const char *name, size_t length, const char *after);

enum { KEY_RANDOM = 32 }; /* hex digits of 128 random bits */
/* A name that no other client has. */
void key_draw(struct env *env, char name[KEY_RANDOM + 1]);
