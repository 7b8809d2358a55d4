/* JSON Lines in memory as an image of a history in memory. */
#pragma once

#include <stdlib.h>

#include "harness/history/history_json.h"

struct history_image {
    char *bytes;
    size_t length;
};

/* The caller frees image->bytes, whatever is returned. */
static inline bool image_read(const void *lines, size_t length, struct history_image *image,
                              struct history_error *error) {
    FILE *in = fmemopen((void *)(uintptr_t)lines, length, "r");
    FILE *out = open_memstream(&image->bytes, &image->length);
    if (!in || !out) abort();
    bool good = history_json_read(in, out, error);
    fclose(in);
    if (fclose(out) != 0) abort();
    return good;
}
