/* Any text: a range, in which the lower end is not above the upper one, or a reason that is not empty. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/application/range_expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool range_of_any_name(const void *asked, const char *name, struct range *range) {
    (void)asked;
    *range = (struct range){0, (int64_t)strlen(name)};
    return strchr(name, '.') != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1), reason[RANGE_REASON];
    struct range range;
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (range_evaluate(text, range_of_any_name, NULL, &range, reason)) assert(range.low <= range.high);
    else assert(reason[0] != '\0');
    free(text);
    return 0;
}
