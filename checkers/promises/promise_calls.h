/* Calls: what is known when one is asked, and what its answer changes. */
#pragma once

#include "checkers/promises/promise_pass.h"

/* Take in an EVENT_ASK, an EVENT_ANSWER. */
void call_ask(struct promise_pass *pass);
void call_answer(struct promise_pass *pass);

bool is_under_way(const struct promise_call *call);

/* The call that the present ANSWER answers; NULL: it answers no call. */
struct promise_call *answered_call(const struct promise_pass *pass);
/* ... if that is an acquire which was answered ok; else NULL. */
struct promise_call *granted_call(const struct promise_pass *pass);
