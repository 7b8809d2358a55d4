/* A rule: a function for each kind of event that it wants, called after the pass has taken the event in. It calls
 * promise_break where a promise is broken. */
#pragma once

#include "checkers/promises/promise_calls.h"
#include "checkers/promises/promise_disturbances.h"
#include "checkers/promises/promise_holds.h"
#include "checkers/promises/promise_leases.h"

struct promise_rule {
    void (*on[EVENT_KINDS])(struct promise_pass *pass);
};

/* All rules in the order in which they are called; ends with NULL. */
extern const struct promise_rule *const PROMISE_TABLE[];
