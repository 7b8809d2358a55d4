#include "harness/resp_service/reply_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_list(struct reply_text *reply, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
static void write_list(struct reply_text *reply, const char *format, va_list arguments) {
    char *text = NULL;
    int length = vasprintf(&text, format, arguments);
    if (length < 0) abort();
    if (reply->length + (size_t)length > reply->capacity) {
        reply->capacity = 2 * reply->capacity + (size_t)length;
        reply->bytes = realloc(reply->bytes, reply->capacity);
        if (!reply->bytes) abort();
    }
    memcpy(reply->bytes + reply->length, text, (size_t)length);
    reply->length += (size_t)length;
    free(text);
}

void reply_write(struct reply_text *reply, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_list(reply, format, arguments);
    va_end(arguments);
}

/* A message may quote what the caller sent. */
void reply_error(struct reply_text *reply, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    reply_write(reply, "-ERR ");
    size_t from = reply->length;
    write_list(reply, format, arguments);
    va_end(arguments);
    for (size_t at = from; at < reply->length; at++)
        if (reply->bytes[at] == '\r' || reply->bytes[at] == '\n' || reply->bytes[at] == '\0') reply->bytes[at] = '?';
    reply_write(reply, "\r\n");
}

void reply_bulk(struct reply_text *reply, const char *text) {
    reply_write(reply, "$%zu\r\n%s\r\n", strlen(text), text);
}

void reply_number(struct reply_text *reply, const char *name, uint64_t number) {
    reply_bulk(reply, name);
    reply_write(reply, ":%llu\r\n", (unsigned long long)number);
}

void reply_free(struct reply_text *reply) {
    free(reply->bytes);
    *reply = (struct reply_text){.length = 0};
}
