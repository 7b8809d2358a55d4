/* Histories of other tools under any bytes: a refusal names the byte; what is read is judged by every model within
 * small limits, and all memory is given back. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "checkers/formats/text.h"
#include "checkers/linearizability/linearizable.h"

enum { FUZZ_MEMORY = 4 << 20, FUZZ_TIME_NS = 200000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_judge(const struct operations *operations, struct limits *limits) {
    for (size_t each = 0; each < operations->object_count; each++) {
        for (int model = 0; model < MODEL_COUNT; model++) {
            const struct linearizable_settings settings = {.model = (enum model)model,
                                                           .permits = 2,
                                                           .initial = OPERATION_NIL,
                                                           .leases = operations->policies.leases};
            struct linearizable_result result;
            linearizable_decide(&operations->objects[each], (uint32_t)operations->process_count, &settings, limits,
                                &result);
            const struct concurrent_object *object = &operations->objects[each];
            if (result.status == VERDICT_VIOLATED && object->list[result.operation].end == OPERATION_OPEN) abort();
        }
    }
}

static inline void fuzz_outside(const uint8_t *data, size_t size,
                                enum parse_result (*read)(struct text *, struct operations *)) {
    struct text text;
    struct limits limits;
    struct operations operations;
    struct policies policies = {.failed_release = size % 3,
                                .leases = size % 2,
                                .owned = size % 7 < 4,
                                .nests = size % 5 == 0,
                                .refused_lost = size % 11 < 5};
    FILE *in = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
    if (!in) return;
    limits_begin(&limits, FUZZ_MEMORY, FUZZ_TIME_NS);
    operations_begin(&operations, &limits, &policies);
    text_open(&text, in);
    enum parse_result result = read(&text, &operations);
    if (result == PARSE_BAD && strncmp(text.error, "byte ", 5) != 0) abort();
    if (result == PARSE_FULL && !limits.exceeded[0]) abort();
    if (result == PARSE_DONE) fuzz_judge(&operations, &limits);
    operations_end(&operations);
    if (limits.used != 0) abort();
    fclose(in);
}
