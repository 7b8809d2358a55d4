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
    if (length == 2 && memcmp(format, "%b", 2) == 0) {
        word->text = va_arg(*arguments, const char *);
        word->length = va_arg(*arguments, size_t);
        return true;
    }
    if (length == 2 && memcmp(format, "%s", 2) == 0) {
        word->text = va_arg(*arguments, const char *);
        word->length = strlen(word->text);
        return true;
    }
    if (length == 2 && memcmp(format, "%d", 2) == 0) {
        word_of_number(word, va_arg(*arguments, int));
        return true;
    }
    if (length == 2 && memcmp(format, "%u", 2) == 0) {
        word_of_number(word, va_arg(*arguments, unsigned));
        return true;
    }
    if (length == 4 && memcmp(format, "%lld", 4) == 0) {
        word_of_number(word, va_arg(*arguments, long long));
        return true;
    }
    return false;
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

char *redis_command_format(const char *format, va_list arguments, size_t *length) {
    struct word words[WORDS_MOST];
    va_list copied;
    va_copy(copied, arguments);
    size_t count = words_take(words, format, &copied), room = HEADER;
    va_end(copied);
    char *command = NULL;
    if (count == 0) {
        int formatted = redisvFormatCommand(&command, format, arguments);
        if (formatted < 0) abort(); /* a format that a programmer got wrong, or no memory */
        *length = (size_t)formatted;
        return command;
    }
    for (size_t each = 0; each < count; each++) room += HEADER + words[each].length;
    command = malloc(room);
    if (!command) abort();
    char *at = header_put(command, '*', count);
    for (size_t each = 0; each < count; each++) {
        at = header_put(at, '$', words[each].length);
        if (words[each].length) memcpy(at, words[each].text, words[each].length);
        at += words[each].length;
        *at++ = '\r';
        *at++ = '\n';
    }
    *length = (size_t)(at - command);
    return command;
}
