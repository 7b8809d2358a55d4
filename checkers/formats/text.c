#include "checkers/formats/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void text_open(struct text *text, FILE *file) {
    text->file = file;
    text->at = text->end = 0;
    text->before = 0;
    text->error[0] = '\0';
}

uint64_t text_offset(const struct text *text) {
    return text->before + text->at;
}

bool text_fill(struct text *text) {
    size_t left = text->end - text->at;
    memmove(text->buffer, text->buffer + text->at, left);
    text->before += text->at;
    text->at = 0;
    text->end = left + fread(text->buffer + left, 1, sizeof text->buffer - left, text->file);
    if (text->end == left && ferror(text->file)) text_fail(text, text->before + left, "%s", strerror(errno));
    return text->end > left;
}

bool text_fail(struct text *text, uint64_t offset, const char *format, ...) {
    if (text->error[0]) return false;
    int used = snprintf(text->error, sizeof text->error, "byte %llu: ", (unsigned long long)offset);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text->error + used, sizeof text->error - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

bool text_unexpected(struct text *text, const char *where) {
    int byte = text_peek(text);
    if (byte == TEXT_END) return text_fail(text, text_offset(text), "the file ends %s", where);
    if (byte > ' ' && byte < 127) return text_fail(text, text_offset(text), "unexpected '%c' %s", byte, where);
    return text_fail(text, text_offset(text), "unexpected byte 0x%02x %s", (unsigned)byte, where);
}

bool text_number(const char *word, int64_t *number) {
    char *end;
    const char *digits = *word == '-' || *word == '+' ? word + 1 : word;
    if (*digits < '0' || *digits > '9') return false;
    errno = 0;
    *number = strtoll(word, &end, 10);
    if (*end == 'N' && end[1] == '\0') end++; /* a big integer of EDN that is not big */
    return errno == 0 && *end == '\0';
}

int text_place(const char *word, const char *const *words) {
    for (int each = 0; words[each]; each++)
        if (strcmp(word, words[each]) == 0) return each;
    return -1;
}

enum parse_result text_event(struct text *text, struct operations *operations, const struct operation_event *event,
                             uint64_t offset) {
    enum take_result taken = operations_take(operations, event);
    if (taken == TAKEN) return PARSE_DONE;
    if (taken == TAKE_FULL) return PARSE_FULL;
    text_fail(text, offset, "%s", operations->fault);
    return PARSE_BAD;
}
