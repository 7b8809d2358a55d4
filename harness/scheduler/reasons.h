/* A state that several faults may ask for at once lasts until the last of them has taken its request back.
 * Decision 0026. */
#pragma once

#include <stdbool.h>

/* Counts one reason more, or one less but never below 0. Returns the number of reasons that are left. */
static inline int reasons_count(int *reasons, bool more) {
    if (more) ++*reasons;
    else if (*reasons > 0) --*reasons;
    return *reasons;
}
