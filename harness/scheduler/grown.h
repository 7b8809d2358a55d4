#pragma once

#include <stdlib.h>

/* An array that grows, with room for `wanted` elements of this size at least, and then for twice as many as it needs.
 * Ends the process where there is no memory. */
static inline void *grown(void *array, size_t wanted, size_t *room, size_t size) {
    if (wanted <= *room) return array;
    *room = 2 * wanted;
    array = realloc(array, *room * size);
    if (!array) abort();
    return array;
}
