/* The options of a program that lockstorm starts, as a table: --NAME VALUE, or --NAME alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum argument_kind { ARGUMENT_TEXT, ARGUMENT_NUMBER, ARGUMENT_FLAG, ARGUMENT_OTHER };

/* The rows of a table; the last one is {0}. */
#define TEXT_ARGUMENT(option, at)                                                                                      \
    { .name = option, .kind = ARGUMENT_TEXT, .place = at }
#define NUMBER_ARGUMENT(option, at) NUMBER_BETWEEN(option, at, INT64_MIN, INT64_MAX)
#define NUMBER_BETWEEN(option, at, low, high)                                                                          \
    { .name = option, .kind = ARGUMENT_NUMBER, .place = at, .least = low, .most = high }
#define FLAG_ARGUMENT(option, at)                                                                                      \
    { .name = option, .kind = ARGUMENT_FLAG, .place = at }
#define OTHER_ARGUMENT(option, at, function)                                                                           \
    { .name = option, .kind = ARGUMENT_OTHER, .place = at, .take = function }

struct argument {
    const char *name; /* NULL: the table ends */
    enum argument_kind kind;
    void *place;         /* of a const char *, an int64_t, a bool; of ARGUMENT_OTHER: what `take` fills in */
    int64_t least, most; /* of a number */
    bool (*take)(const char *value, void *place); /* ARGUMENT_OTHER: false: it is not usable */
};

/* What was wrong: the value of this option, or an unknown option (NULL), which was said on standard error. */
struct argument_refused {
    const char *name, *value;
};

/* Fills in what argv gives; texts stay argv's. False: a value is not usable, an option is unknown, or there are other
 * words. */
bool arguments_read(int argc, char **argv, const struct argument *table, struct argument_refused *refused);
