/* Lines of a schedule file: what is understood is written and read again as the same, everything else has a reason. */
#include <stdlib.h>
#include <string.h>

#include "harness/explorer/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct deviation deviation, again;
    const char *reason = NULL;
    char written[SCHEDULE_LINE], twice[SCHEDULE_LINE];
    char *line = malloc(size + 1); /* exactly as long, so that one byte too far is seen */
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
