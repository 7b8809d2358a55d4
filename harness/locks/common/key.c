#include "harness/locks/common/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key key_make(const char *before, const char *name, size_t length, const char *after) {
    size_t head = strlen(before), tail = strlen(after);
    size_t braces = memchr(name, '{', length) ? 0 : 1, whole = head + length + tail + 2 * braces;
    struct key key = {.bytes = malloc(whole + 1), .length = whole};
    if (!key.bytes) abort();
    char *end = key.bytes;
    memcpy(end, before, head);
    end += head;
    if (braces) *end++ = '{';
    memcpy(end, name, length);
    end += length;
    if (braces) *end++ = '}';
    memcpy(end, after, tail);
    return key;
}

void key_free(struct key *key) {
    free(key->bytes);
    *key = (struct key){0};
}

char *key_hexadecimal(const char *before, const char *name, size_t length, const char *after) {
    char *text = malloc(strlen(before) + 2 * length + strlen(after) + 1);
    if (!text) abort();
    char *end = text + sprintf(text, "%s", before);
    for (size_t each = 0; each < length; each++) end += sprintf(end, "%02x", (unsigned)(unsigned char)name[each]);
    strcpy(end, after);
    return text;
}

/* Two statements: the order of a call's arguments is the compiler's choice, and a seed must give the same bytes. */
void key_draw(struct env *env, char name[KEY_RANDOM + 1]) {
    uint64_t last = env_random(env);
    uint64_t first = env_random(env);
    snprintf(name, KEY_RANDOM + 1, "%016" PRIx64 "%016" PRIx64, first, last);
}
