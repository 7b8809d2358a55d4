/* The checkers as a library for the tests: many small histories, judged in one process. */
#include <stdlib.h>
#include <string.h>

#include "checkers/commands/render.h"

char *judge_records(const struct history_record *records, uint64_t count, uint64_t dropped, struct policy policy,
                    const char *required);

/* Judges records as they are, except that a checksum of 0 is computed. A record of kind 0 is torn; `dropped` more found
 * no room. `required` is what --require would get; empty: as without it. Returns what `check --all-policies` would
 * print, NULL if a record is damaged or a property unknown. The caller frees it with free. */
char *judge_records(const struct history_record *records, uint64_t count, uint64_t dropped, struct policy policy,
                    const char *required) {
    static struct readings readings;
    struct history_error error;
    struct history_settings settings = {.time = HISTORY_TIME_VIRTUAL, .capacity = count};
    size_t bytes = HISTORY_HEADER_SIZE + count * HISTORY_RECORD_SIZE;
    char *image = malloc(bytes), *text = NULL;
    if (!image) abort();
    history_header_fill(image, &settings, count + dropped);
    struct history_record *slots = (struct history_record *)(image + HISTORY_HEADER_SIZE);
    memcpy(slots, records, count * HISTORY_RECORD_SIZE);
    for (uint64_t index = 0; index < count; index++)
        if (slots[index].kind && !slots[index].checksum) slots[index].checksum = history_checksum(&slots[index], index);
    struct history_reader *reader = history_reader_memory(image, bytes, &error);
    struct demand demand = {0};
    char *list = strdup(required);
    if (!list) abort();
    bool known = demand_parse(&demand, list, &error);
    free(list);
    int status;
    if (reader && known && readings_judge(&readings, reader, (struct policy){RELEASE_UNKNOWN, ACQUIRE_UNKNOWN})) {
        json_t *verdict = render_verdict(&readings, &demand, policy, true, &status);
        text = json_dumps(verdict, JSON_COMPACT | JSON_ENSURE_ASCII);
        json_decref(verdict);
    }
    if (reader && known) judge_close(&readings.first);
    history_reader_close(reader);
    free(image);
    return text;
}
