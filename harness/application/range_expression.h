/* Expressions of whole numbers as checks of an application have them: "10 - consume.ok". A name stands for a range, as
 * it is not known of every request whether it took effect; so the value is a range, too.
 *
 *   expression = term { ("+" | "-") term };  term = factor { "*" factor };
 *   factor = number | name "." name | "(" expression ")" | "-" factor | ("min" | "max") "(" expression "," expression
 * ")"
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
    int64_t low, high;
};

enum { RANGE_NAME = 64, RANGE_REASON = 240 };

/* Fills in the range of a name. False: there is no such name. */
typedef bool range_named(const void *asked, const char *name, struct range *range);

/* False: `reason`, of RANGE_REASON bytes, says what is wrong, and where. */
bool range_evaluate(const char *text, range_named *named, const void *asked, struct range *value, char *reason);
