/* Fuzzes the readers of a library's schedule: a line that one accepts is written and read back unchanged, and a line
 * that it refuses has a reason. */
#include <stdlib.h>
#include <string.h>

#include "harness/library_search/library_schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void deviation_try(const char *line) {
    struct library_deviation deviation, again;
    const char *reason = NULL;
    char written[LIBRARY_LINE];
    if (!library_deviation_read(line, &deviation, &reason)) {
        if (!reason || !*reason) abort();
        return;
    }
    if (!library_deviation_read(library_deviation_write(&deviation, written), &again, &reason)) abort();
    if (!library_choice_same(deviation.usual, again.usual) || !library_choice_same(deviation.instead, again.instead) ||
        deviation.step != again.step)
        abort();
}

static const struct planned_call *only_call(const struct workload *workload) {
    for (int client = 0; client < WORKLOAD_CLIENTS; client++)
        for (int thread = 0; thread < WORKLOAD_THREADS; thread++)
            if (workload->threads[client][thread].count == 1) return &workload->threads[client][thread].calls[0];
    return NULL;
}

static void call_try(const char *line) {
    static struct workload workload, again;
    const char *reason = NULL;
    char written[WORKLOAD_LINE], twice[WORKLOAD_LINE];
    memset(&workload, 0, sizeof workload);
    memset(&again, 0, sizeof again);
    if (!workload_line_read(&workload, line, &reason)) {
        if (!reason || !*reason) abort();
        return;
    }
    const struct planned_call *call = only_call(&workload);
    if (!call || !workload_line_read(&again, workload_line_write(call, written), &reason)) abort();
    if (strcmp(written, workload_line_write(only_call(&again), twice)) != 0) abort();
    workload_match(&workload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *line = malloc(size + 1); /* of exactly this size, so that the sanitizer sees a read beyond it */
    if (!line) abort();
    if (size) memcpy(line, data, size);
    line[size] = '\0';
    deviation_try(line);
    call_try(line);
    free(line);
    return 0;
}
