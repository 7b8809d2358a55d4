#include "harness/environment/redis_command.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 24, DIGITS = 24, HEADER = DIGITS + 5 };

struct word {
    const char *text;
    size_t length;
    char digits[DIGITS]; /* of a number: `text` points into it */
};

/* Writes a number's digits before `end`; returns the first. */
static char *digits_before(char *end, uint64_t value) {
    do *--end = (char)('0' + value % 10);
    while (value /= 10);
    return end;
}

static void word_of_number(struct word *word, int64_t value) {
    char *end = word->digits + sizeof word->digits;
    char *first = digits_before(end, value < 0 ? -(uint64_t)value : (uint64_t)value);
    if (value < 0) *--first = '-';
    word->text = first;
    word->length = (size_t)(end - first);
}

/* Reads one word of the format. False: it is for hiredis. */
static bool word_take(struct word *word, const char *format, size_t length, va_list *arguments) {
    if (!memchr(format, '%', length)) {
        word->text = format;
        word->length = length;
        return length > 0;
    }
    if (length == 4 && memcmp(format, "%lld", 4) == 0) {
        word_of_number(word, va_arg(*arguments, long long));
        return true;
    }
    if (length != 2 || format[0] != '%') return false;
    switch (format[1]) {
    case 'd': word_of_number(word, va_arg(*arguments, int)); return true;
    case 'u': word_of_number(word, va_arg(*arguments, unsigned)); return true;
    case 'b':
    case 's':
        word->text = va_arg(*arguments, const char *);
        word->length = format[1] == 'b' ? va_arg(*arguments, size_t) : strlen(word->text);
        return true;
    default: return false;
    }
}

/* The number of words; 0: the format is for hiredis. */
static size_t words_take(struct word *words, const char *format, va_list *arguments) {
    size_t count = 0;
    for (const char *at = format;; at++) {
        size_t length = strcspn(at, " ");
        if (count == WORDS_MOST || !word_take(&words[count], at, length, arguments)) return 0;
        count++;
        at += length;
        if (*at == '\0') return count;
    }
}

static char *header_put(char *at, char kind, size_t value) {
    char digits[DIGITS], *end = digits + sizeof digits, *first = digits_before(end, value);
    *at++ = kind;
    memcpy(at, first, (size_t)(end - first));
    at += end - first;
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

static char *word_put(char *at, const char *text, size_t length) {
    at = header_put(at, '$', length);
    if (length) memcpy(at, text, length);
    memcpy(at + length, "\r\n", 2);
    return at + length + 2;
}

char *redis_command_format(const char *const *before, size_t before_count, const char *format, va_list arguments,
                           size_t *length) {
    struct word words[WORDS_MOST];
    char *formatted = NULL; /* by hiredis; `rest` of it stands behind the number of words */
    const char *rest = "";
    va_list copied;
    va_copy(copied, arguments);
    size_t count = words_take(words, format, &copied), total = before_count + count, rest_length = 0;
    va_end(copied);
    if (count == 0) {
        int bytes = redisvFormatCommand(&formatted, format, arguments);
        if (bytes < 0) abort(); /* a format that a programmer got wrong, or no memory */
        total += strtoul(formatted + 1, NULL, 10);
        rest = strchr(formatted, '\n') + 1;
        rest_length = (size_t)(formatted + bytes - rest);
    }
    size_t room = HEADER + rest_length;
    for (size_t each = 0; each < before_count; each++) room += HEADER + strlen(before[each]);
    for (size_t each = 0; each < count; each++) room += HEADER + words[each].length;
    char *command = malloc(room);
    if (!command) abort();
    char *at = header_put(command, '*', total);
    for (size_t each = 0; each < before_count; each++) at = word_put(at, before[each], strlen(before[each]));
    for (size_t each = 0; each < count; each++) at = word_put(at, words[each].text, words[each].length);
    memcpy(at, rest, rest_length);
    free(formatted);
    *length = (size_t)(at + rest_length - command);
    return command;
}
