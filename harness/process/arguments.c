#include "harness/process/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

enum { OPTIONS_MOST = 31 };

static bool number_read(const struct argument *argument, const char *text) {
    char *end;
    bool is_plain = text[0] == '-' || (text[0] >= '0' && text[0] <= '9'); /* no blank, no plus */
    errno = 0;
    int64_t number = strtoll(text, &end, 10);
    if (!is_plain || errno || end == text || *end) return false;
    *(int64_t *)argument->place = number;
    return number >= argument->least && number <= argument->most;
}

static bool value_take(const struct argument *argument, const char *value) {
    switch (argument->kind) {
    case ARGUMENT_TEXT: *(const char **)argument->place = value; return true;
    case ARGUMENT_NUMBER: return number_read(argument, value);
    case ARGUMENT_FLAG: return *(bool *)argument->place = true;
    default: return argument->take(value, argument->place);
    }
}

bool arguments_read(int argc, char **argv, const struct argument *table, struct argument_refused *refused) {
    struct option options[OPTIONS_MOST + 1] = {0};
    for (int each = 0; table[each].name && each < OPTIONS_MOST; each++)
        options[each] = (struct option){.name = table[each].name,
                                        .has_arg = table[each].kind == ARGUMENT_FLAG ? no_argument : required_argument};
    *refused = (struct argument_refused){0};
    for (int place, found; (found = getopt_long(argc, argv, "", options, &place)) != -1;) {
        if (found != 0) return false;
        if (value_take(&table[place], optarg)) continue;
        *refused = (struct argument_refused){table[place].name, optarg};
        return false;
    }
    return optind == argc;
}
