/* A rule: asked about each event of the kinds that it names, after the course has taken the event in. Calls
 * promise_break where a promise is broken. */
#ifndef LOCKSTORM_CHECKERS_PROMISE_RULE_H
#define LOCKSTORM_CHECKERS_PROMISE_RULE_H

#include "checkers/promises/promise_course.h"

struct promise_rule {
    void (*on[EVENT_KINDS])(struct promise_course *course);
};

/* All rules in the order in which they are asked; ends with NULL. */
extern const struct promise_rule *const PROMISE_TABLE[];

#endif
