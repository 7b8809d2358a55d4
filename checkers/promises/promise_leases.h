/* How long leases last, and the library's other numbers. Times and durations saturate at PROMISE_ALWAYS. */
#pragma once

#include "checkers/promises/promise_pass.h"

int64_t ms_of(int64_t ns);
int64_t after_ms(int64_t from_ns, int64_t ms);

int64_t lease_of_call(const struct promise_pass *pass, const struct call *call); /* PROMISE_ALWAYS: no end */
int64_t grain_ms(const struct promise_pass *pass); /* what rounding may take from a lease or add to it */
int64_t timer_ms(const struct promise_pass *pass);
int servers_of(const struct promise_pass *pass);
int majority_of(const struct promise_pass *pass);
int64_t watchdog_spare_ms(const struct promise_pass *pass); /* least that a renewed lease has left */
/* After so long every key has ended that nobody renews; a minute if no lease has an end. */
int64_t two_leases_ms(const struct promise_pass *pass, const struct promise_resource *resource);

/* Is the watchdog to keep what the call is granted? */
bool is_renewed(const struct call *call);
bool takes_lease(const struct call *call);

/* Until when the lease of an acquire or renewal certainly lasts while the call is under way: until the watchdog runs,
 * its lease has an end, too. */
int64_t end_under_way(const struct promise_pass *pass, const struct promise_owner *owner, const struct call_event *ask);

/* Until when the lease of a granted call certainly lasts. Calls of the owner that are under way or were asked later
 * may have given it an earlier end: a server may have executed them after the granted one. */
int64_t end_beside_others(const struct promise_pass *pass, const struct promise_call *call);
