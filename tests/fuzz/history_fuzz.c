/* The reader of binary histories under any bytes: it must touch no other memory, and it must end.
 *
 * A fuzzer does not guess checksums, so every second input is made plausible first: the header is corrected and each
 * record's checksum is computed. Then only the fields are hostile. A history that reads to its end must also survive
 * the way to JSON Lines and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_plausible(char *bytes, size_t size) {
    uint64_t count = (size - HISTORY_HEADER_SIZE) / HISTORY_RECORD_SIZE;
    struct history_settings settings = {.time = HISTORY_TIME_REAL, .capacity = count};
    history_header_fill(bytes, &settings, count);
    struct history_record *records = (struct history_record *)(bytes + HISTORY_HEADER_SIZE);
    for (uint64_t index = 0; index < count; index++) {
        if (records[index].checksum != 0) records[index].checksum = history_checksum(&records[index], index);
        else memset(&records[index], 0, sizeof records[index]); /* what a torn slot holds is not kept in JSON Lines */
    }
}

/* False: a record is damaged. */
static bool read_all(struct history_reader *reader) {
    struct history_record record;
    uint64_t steps = 0, count = history_reader_count(reader);
    enum history_state state;
    while ((state = history_reader_next(reader, false, &record)) != HISTORY_END) {
        size_t length = 0;
        if (++steps > count || state == HISTORY_WAIT) abort();
        if (state == HISTORY_DAMAGED) return false;
        if (state != HISTORY_RECORD) continue;
        const uint32_t indices[] = {(uint32_t)history_reader_index(reader), record.name, record.actor};
        for (size_t each = 0; each < sizeof indices / sizeof indices[0]; each++) {
            const char *text = history_reader_text(reader, indices[each], &length);
            if (text && (length > HISTORY_TEXT_MAX || text[length] != '\0')) abort();
        }
    }
    return true;
}

static void convert(struct history_reader *reader, const char *bytes) {
    struct history_error error = {.text = ""};
    char *lines;
    struct history_image image;
    size_t length;
    FILE *out = open_memstream(&lines, &length);
    history_reader_rewind(reader);
    if (!out || !history_json_write(reader, false, out, &error)) abort();
    fclose(out);
    if (!image_read(lines, length, &image, &error)) abort();
    size_t records = history_reader_count(reader) * HISTORY_RECORD_SIZE;
    if (image.length != HISTORY_HEADER_SIZE + records) abort();
    if (memcmp(image.bytes + HISTORY_HEADER_SIZE, bytes + HISTORY_HEADER_SIZE, records) != 0) abort();
    free(image.bytes);
    free(lines);
}

/* The first byte chooses; the rest is the file. Inputs without a header's length get one in front. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct history_error error;
    if (size == 0) return 0;
    bool plausible = data[0] & 1, short_header = data[0] & 2;
    size_t lead = short_header ? HISTORY_HEADER_SIZE : 0, length = lead + size - 1;
    char *bytes = calloc(1, length + 1);
    if (!bytes) abort();
    memcpy(bytes + lead, data + 1, size - 1);
    if (plausible && length >= HISTORY_HEADER_SIZE) make_plausible(bytes, length);
    char *exact = malloc(length ? length : 1); /* so that one byte too far is seen */
    if (!exact) abort();
    memcpy(exact, bytes, length);
    free(bytes);
    struct history_reader *reader = history_reader_memory(exact, length, &error);
    if (reader && read_all(reader)) convert(reader, exact);
    history_reader_close(reader);
    free(exact);
    return 0;
}
