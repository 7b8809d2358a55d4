/* Fuzzes the readers of schedules: a line that one of them accepts is written and read back unchanged, and a line that
 * it refuses has a reason. Deviations are read as those of a C lock, and as those of hosted programs. */
#include <stdlib.h>
#include <string.h>

#include "harness/library/library_world.h"
#include "harness/search/schedule.h"
#include "harness/simulation/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void deviation_try(const struct choice_space *space, const char *line) {
    struct deviation deviation, again;
    const char *reason = NULL;
    char written[SCHEDULE_LINE], twice[SCHEDULE_LINE];
    if (!deviation_read(space, line, &deviation, &reason)) {
        if (!reason || !*reason) abort();
        return;
    }
    if (!deviation_read(space, deviation_write(space, &deviation, written), &again, &reason)) abort();
    if (!choice_same(deviation.usual, again.usual) || !choice_same(deviation.instead, again.instead)) abort();
    if (deviation.step != again.step || strcmp(written, deviation_write(space, &again, twice)) != 0) abort();
}

static const struct planned_call *only_call(const struct workload *workload) {
    for (int thread = 0; thread < WORKLOAD_THREADS_ALL; thread++)
        if (workload->threads[thread].count == 1) return &workload->threads[thread].calls[0];
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
    deviation_try(&SIMULATED_CHOICES, line);
    deviation_try(&HOSTED_CHOICES, line);
    call_try(line);
    free(line);
    return 0;
}
