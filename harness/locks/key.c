#include "harness/locks/key.h"

#include <stdlib.h>
#include <string.h>

struct key key_make(const char *before, const char *name, size_t length, const char *after) {
    size_t head = strlen(before), tail = strlen(after);
    struct key key = {.bytes = malloc(head + length + tail + 2), .length = head + length + tail + 2};
    if (!key.bytes) abort();
    char *end = key.bytes;
    memcpy(end, before, head), end += head;
    *end++ = '{';
    memcpy(end, name, length), end += length;
    *end++ = '}';
    memcpy(end, after, tail);
    return key;
}

void key_free(struct key *key) {
    free(key->bytes);
    *key = (struct key){0};
}
