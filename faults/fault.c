#include "faults/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fault_fail(struct fault_report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->text, sizeof report->text, format, arguments);
    va_end(arguments);
    return false;
}

static const struct fault_word *word_find(const struct fault *fault, const char *name) {
    for (const struct fault_word *word = fault->options; word && word->name; word++)
        if (strcmp(word->name, name) == 0) return word;
    return NULL;
}

static const char *given(const struct fault_target *target, const char *name) {
    for (size_t each = 0; each < target->option_count; each++)
        if (strcmp(target->options[each].name, name) == 0) return target->options[each].value;
    return NULL;
}

bool fault_check_options(const struct fault *fault, const struct fault_target *target, struct fault_report *report) {
    for (size_t each = 0; each < target->option_count; each++) {
        const char *name = target->options[each].name;
        if (!word_find(fault, name)) return fault_fail(report, "%s has no option %s", fault->name, name);
    }
    for (const struct fault_word *word = fault->options; word && word->name; word++)
        if (!word->usual && !given(target, word->name))
            return fault_fail(report, "%s needs the option %s: %s", fault->name, word->name, word->meaning);
    return true;
}

const char *fault_text(const struct fault *fault, const struct fault_target *target, const char *name) {
    const char *value = given(target, name);
    const struct fault_word *word = word_find(fault, name);
    if (!word) abort();
    return value ? value : word->usual;
}

bool fault_number(const struct fault *fault, const struct fault_target *target, const char *name, int64_t low,
                  int64_t high, int64_t *value, struct fault_report *report) {
    const char *text = fault_text(fault, target, name);
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    bool whole = errno == 0 && end != text && *end == '\0';
    if (whole && *value >= low && *value <= high) return true;
    return fault_fail(report, "%s: %s=%.40s is not a number from %lld to %lld", fault->name, name, text, (long long)low,
                      (long long)high);
}
