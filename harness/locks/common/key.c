#include "harness/locks/common/key.h"

#include <stdlib.h>
#include <string.h>

struct key key_make(const char *before, const char *name, size_t length, const char *after) {
    size_t head = strlen(before), tail = strlen(after);
    size_t braces = memchr(name, '{', length) ? 0 : 1, whole = head + length + tail + 2 * braces;
    struct key key = {.bytes = malloc(whole + 1), .length = whole};
    if (!key.bytes) abort();
    char *end = key.bytes;
    memcpy(end, before, head), end += head;
    if (braces) *end++ = '{';
    memcpy(end, name, length), end += length;
    if (braces) *end++ = '}';
    memcpy(end, after, tail);
    return key;
}

void key_free(struct key *key) {
    free(key->bytes);
    *key = (struct key){0};
}
