/* Text in an array of the caller, always with a 0 behind it. What does not fit is left out, and `cut` is set. */
#pragma once

#include <assert.h>
#include <string.h>

#include "faults/proxy/resp.h"

struct short_text {
    char *bytes;
    size_t room, length;
    bool cut;
};

static inline struct short_text short_text_in(char *bytes, size_t room) {
    assert(room > 0);
    bytes[0] = '\0';
    return (struct short_text){.bytes = bytes, .room = room};
}

static inline void short_text_add(struct short_text *text, struct span more) {
    size_t free_room = text->room - 1 - text->length;
    if (more.length > free_room) {
        more.length = free_room;
        text->cut = true;
    }
    if (more.length > 0) memcpy(text->bytes + text->length, more.bytes, more.length);
    text->length += more.length;
    text->bytes[text->length] = '\0';
}

static inline void short_text_say(struct short_text *text, const char *more) {
    short_text_add(text, (struct span){more, strlen(more)});
}

static inline void short_text_byte(struct short_text *text, char byte) {
    short_text_add(text, (struct span){&byte, 1});
}

static inline struct span text_span(const char *text) {
    return (struct span){text, strlen(text)};
}

static inline bool spans_equal(struct span one, struct span other) {
    return one.length == other.length && (one.length == 0 || memcmp(one.bytes, other.bytes, one.length) == 0);
}
