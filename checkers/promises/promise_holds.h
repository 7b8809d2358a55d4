/* What owners hold, certainly and possibly, and what a grant adds. */
#pragma once

#include "checkers/promises/promise_pass.h"

bool holds_certainly(const struct promise_pass *pass, const struct promise_owner *owner);
bool holds_in_mode(const struct promise_pass *pass, const struct promise_owner *owner, enum call_mode mode);
bool may_hold(const struct promise_owner *owner);

/* The present event answers the call, an acquire, with ok. */
void hold_grant(struct promise_pass *pass, struct promise_call *call);
