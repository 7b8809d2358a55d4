/* JSON Lines under any bytes: a refusal has a reason; what is read is written and read again, and must be the same
 * history and the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_lines(const void *lines, size_t length, struct history_image *image) {
    struct history_error error = {.text = ""};
    bool good = image_read(lines, length, image, &error);
    if (!good && !error.text[0]) abort();
    if (!good) free(image->bytes);
    return good;
}

/* The caller frees *lines. */
static void write_lines(const struct history_image *image, char **lines, size_t *length) {
    struct history_error error = {.text = ""};
    struct history_reader *reader = history_reader_memory(image->bytes, image->length, &error);
    FILE *out = open_memstream(lines, length);
    if (!reader || !out || !history_json_write(reader, false, out, &error)) abort();
    fclose(out);
    history_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct history_image first, second;
    char *once, *twice;
    size_t once_length, twice_length;
    if (size == 0 || !read_lines(data, size, &first)) return 0;
    write_lines(&first, &once, &once_length);
    if (!read_lines(once, once_length, &second)) abort();
    write_lines(&second, &twice, &twice_length);
    if (first.length != second.length || memcmp(first.bytes, second.bytes, first.length) != 0) abort();
    if (once_length != twice_length || memcmp(once, twice, once_length) != 0) abort();
    free(first.bytes), free(second.bytes);
    free(once), free(twice);
    return 0;
}
