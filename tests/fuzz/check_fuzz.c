/* The checkers under any records: whatever the fields hold, every policy gets a verdict, and no other memory is
 * touched. Eight bytes make a record, of small numbers, so that records refer to each other: who it is about, its
 * outcome, and fields that may also hold the largest and smallest numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/commands/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES = 8, RECORDS_MOST = 512, FIRST = 5 };

static int64_t number(uint8_t byte) {
    static const int64_t odd[] = {INT64_MIN, INT64_MIN + 1, -1, INT64_MAX - 1, INT64_MAX, UINT32_MAX};
    return byte < 250 ? byte : odd[byte - 250];
}

static struct history_record make_record(const uint8_t *bytes) {
    return (struct history_record){.kind = bytes[0],
                                   .outcome = bytes[1] & 3,
                                   .object = bytes[1] >> 2 & 3,
                                   .flags = bytes[1] >> 4,
                                   .actor = bytes[2] & 7,
                                   .name = bytes[2] >> 3 & 7,
                                   .op = bytes[3],
                                   .grant = (uint32_t)number(bytes[4]),
                                   .token = number(bytes[5]),
                                   .value = number(bytes[6]),
                                   .extra = number(bytes[5] ^ bytes[6]),
                                   .mono_ns = number(bytes[7])};
}

/* The names that checkers look for: 1 is "quiet", 3 is "bound_ms". */
static void put_names(struct history_record *records) {
    static const char *const names[] = {"quiet", "bound_ms"};
    records[0].kind = HISTORY_NOTE;
    for (int each = 0; each < 2; each++) {
        struct history_record *head = &records[1 + 2 * each];
        head->kind = HISTORY_TEXT;
        head->value = (int64_t)strlen(names[each]);
        head[1].kind = HISTORY_TEXT_MORE;
        memcpy(&head[1].actor, names[each], strlen(names[each]));
    }
}

static void look(struct history_reader *reader) {
    static struct readings readings;
    const struct policy policy = {RELEASE_UNKNOWN, ACQUIRE_UNKNOWN};
    const struct demand demand = {.chosen = false};
    int status = EXIT_BAD;
    if (!readings_judge(&readings, reader, policy)) abort();
    json_t *verdict = render_verdict(&readings, &demand, policy, true, &status);
    char *text = json_dumps(verdict, JSON_COMPACT);
    if (!text || status == EXIT_BAD) abort();
    free(text);
    json_decref(verdict);
    judge_close(&readings.first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct history_error error;
    uint64_t count = FIRST + (size / BYTES < RECORDS_MOST ? size / BYTES : RECORDS_MOST);
    struct history_settings settings = {.time = HISTORY_TIME_REAL, .capacity = count};
    char *bytes = calloc(1, HISTORY_HEADER_SIZE + count * HISTORY_RECORD_SIZE);
    if (!bytes) abort();
    history_header_fill(bytes, &settings, count);
    struct history_record *records = (struct history_record *)(bytes + HISTORY_HEADER_SIZE);
    put_names(records);
    for (uint64_t index = 0; index < count; index++) {
        if (index >= FIRST) records[index] = make_record(data + (index - FIRST) * BYTES);
        records[index].checksum = records[index].kind ? history_checksum(&records[index], index) : 0;
    }
    struct history_reader *reader =
        history_reader_memory(bytes, HISTORY_HEADER_SIZE + count * HISTORY_RECORD_SIZE, &error);
    if (!reader) abort();
    look(reader);
    history_reader_close(reader);
    free(bytes);
    return 0;
}
