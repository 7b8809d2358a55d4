/* What a call may have left at the servers, and for how long. */
#pragma once

#include "checkers/promises/promise_pass.h"

/* For how long the resource's lease key may live from now on because of this call, in ms; PROMISE_ALWAYS: without end;
 * 0: a right library has nothing there because of it. */
int64_t trace_ms(const struct promise_pass *pass, const struct promise_call *call);

bool leaves_trace(const struct promise_call *call);

/* It was answered ok and its owner may still hold, or it is under way and its client disturbed or ended. */
bool is_outstanding(const struct promise_pass *pass, const struct promise_call *call);

/* It was cancelled, or its answer says so, and it was not granted. */
bool was_cancelled(const struct promise_pass *pass, const struct promise_call *call);
bool was_refused(const struct promise_pass *pass, const struct promise_call *call);
