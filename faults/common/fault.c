#include "faults/common/fault.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fault_fail(struct fault_report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (report) vsnprintf(report->text, sizeof report->text, format, arguments);
    va_end(arguments);
    return false;
}

static const struct fault_option_type *type_find(const struct fault *fault, const char *name) {
    for (const struct fault_option_type *type = fault->options; type && type->name; type++)
        if (strcmp(type->name, name) == 0) return type;
    return NULL;
}

static const char *given(const struct fault_target *target, const char *name) {
    for (size_t each = 0; each < target->option_count; each++)
        if (strcmp(target->options[each].name, name) == 0) return target->options[each].value;
    return NULL;
}

bool fault_check_options(const struct fault *fault, const struct fault_target *target, struct fault_report *report) {
    assert(target->fault == fault && target->driver);
    for (size_t each = 0; each < target->option_count; each++) {
        const char *name = target->options[each].name;
        if (!type_find(fault, name)) return fault_fail(report, "%s has no option %s", fault->row->name, name);
    }
    for (const struct fault_option_type *type = fault->options; type && type->name; type++)
        if (!type->default_value && !given(target, type->name))
            return fault_fail(report, "%s needs the option %s: %s", fault->row->name, type->name, type->meaning);
    return true;
}

const char *fault_option_text(const struct fault_target *target, const char *name) {
    const char *value = given(target, name);
    const struct fault_option_type *type = type_find(target->fault, name);
    assert(type); /* a fault asks for its own options only */
    return value ? value : type->default_value;
}

bool fault_option_number(const struct fault_target *target, const char *name, int64_t low, int64_t high, int64_t *value,
                         struct fault_report *report) {
    const char *text = fault_option_text(target, name);
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    bool whole = errno == 0 && end != text && *end == '\0';
    if (whole && *value >= low && *value <= high) return true;
    return fault_fail(report, "%s: %s=%.40s is not a number from %lld to %lld", target->fault->row->name, name, text,
                      (long long)low, (long long)high);
}

int fault_option_choice(const struct fault_target *target, const char *name, const char *const *choices,
                        struct fault_report *report) {
    const char *text = fault_option_text(target, name);
    char list[128] = "";
    for (int each = 0; choices[each]; each++) {
        size_t used = strlen(list);
        const char *separator = each == 0 ? "" : choices[each + 1] ? ", " : " or ";
        if (strcmp(choices[each], text) == 0) return each;
        snprintf(list + used, sizeof list - used, "%s%s", separator, choices[each]);
    }
    fault_fail(report, "%s: %s=%.40s is not %s", target->fault->row->name, name, text, list);
    return -1;
}
