/* Evaluates each line of standard input as a check of an application expects it. There a.ok is 2 to 5, a.asked is 5,
 * b.ok is 0 to 1. Prints "low high", or "wrong: " and the reason. */
#include <stdio.h>
#include <string.h>

#include "harness/application/range_expression.h"

static bool range_of_name(const void *asked, const char *name, struct range *range) {
    (void)asked;
    if (strcmp(name, "a.ok") == 0) *range = (struct range){2, 5};
    else if (strcmp(name, "a.asked") == 0) *range = (struct range){5, 5};
    else if (strcmp(name, "b.ok") == 0) *range = (struct range){0, 1};
    else return false;
    return true;
}

int main(void) {
    char line[4096], reason[RANGE_REASON];
    while (fgets(line, sizeof line, stdin)) {
        struct range range;
        line[strcspn(line, "\n")] = '\0';
        if (range_evaluate(line, range_of_name, NULL, &range, reason))
            printf("%lld %lld\n", (long long)range.low, (long long)range.high);
        else printf("wrong: %s\n", reason);
    }
    return 0;
}
