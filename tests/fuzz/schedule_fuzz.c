/* Fuzzes the reader of deviations: a line that it accepts is written and read back unchanged, and a line that it
 * refuses has a reason. */
#include <stdlib.h>
#include <string.h>

#include "harness/search/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct deviation deviation, again;
    const char *reason = NULL;
    char written[SCHEDULE_LINE], twice[SCHEDULE_LINE];
    char *line = malloc(size + 1); /* of exactly this size, so that the sanitizer sees a read beyond it */
    if (!line) abort();
    if (size) memcpy(line, data, size);
    line[size] = '\0';
    if (deviation_read(line, &deviation, &reason)) {
        deviation_write(&deviation, written);
        if (!deviation_read(written, &again, &reason)) abort();
        if (!choice_same(deviation.usual, again.usual) || !choice_same(deviation.instead, again.instead)) abort();
        if (deviation.step != again.step || strcmp(written, deviation_write(&again, twice)) != 0) abort();
    } else if (!reason || !*reason) {
        abort();
    }
    free(line);
    return 0;
}
