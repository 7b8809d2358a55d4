#include "checkers/promises/promise_rule.h"

enum { NS_PER_MS = 1000000, MINUTE_MS = 60000 };

int64_t ms_of(int64_t ns) {
    return ns == PROMISE_ALWAYS ? PROMISE_ALWAYS : ns / NS_PER_MS;
}

int64_t after_ms(int64_t from_ns, int64_t ms) {
    int64_t until_ns;
    if (from_ns == PROMISE_ALWAYS || ms == PROMISE_ALWAYS) return PROMISE_ALWAYS;
    if (__builtin_mul_overflow(ms, (int64_t)NS_PER_MS, &until_ns)) return PROMISE_ALWAYS;
    return __builtin_add_overflow(until_ns, from_ns, &until_ns) ? PROMISE_ALWAYS : until_ns;
}

int64_t key_ends_ns(const struct call_event *lease) {
    return lease->remaining_ms > 0 ? after_ms(lease->at_ns, lease->remaining_ms) : 0;
}

int64_t lease_of_call(const struct promise_pass *pass, const struct call *call) {
    if (call->lease == LEASE_GIVEN) return call->lease_ms;
    bool endless = call->lease == LEASE_ENDLESS || pass->facts->default_lease_ms <= 0;
    return endless ? PROMISE_ALWAYS : pass->facts->default_lease_ms;
}

int64_t grain_ms(const struct promise_pass *pass) {
    return 1 + (pass->facts->lease_unit_ms > 1 ? pass->facts->lease_unit_ms : 1);
}

int64_t timer_ms(const struct promise_pass *pass) {
    return pass->facts->timer_ms > 1 ? pass->facts->timer_ms : 1;
}

int servers_of(const struct promise_pass *pass) {
    return pass->facts->nodes > 1 ? pass->facts->nodes : 1;
}

int majority_of(const struct promise_pass *pass) {
    return servers_of(pass) / 2 + 1;
}

int64_t watchdog_spare_ms(const struct promise_pass *pass) {
    int64_t lease_ms = pass->facts->default_lease_ms;
    int64_t divisor = pass->facts->watchdog_divisor > 0 ? pass->facts->watchdog_divisor : 3;
    /* A timer of the watchdog may be late by half its period, and by as much as any timer of the library. */
    int64_t late_ms = lease_ms / (2 * divisor);
    if (late_ms < timer_ms(pass)) late_ms = timer_ms(pass);
    int64_t spare_ms = lease_ms - lease_ms / divisor - late_ms;
    return spare_ms > 0 ? spare_ms : 0;
}

int64_t two_leases_ms(const struct promise_pass *pass, const struct promise_resource *resource) {
    int64_t lease_ms = pass->facts->default_lease_ms;
    if (resource->longest_ms > lease_ms) lease_ms = resource->longest_ms;
    return lease_ms > 0 ? 2 * lease_ms : MINUTE_MS;
}

bool is_renewed(const struct call *call) {
    return call->verb == CALL_ACQUIRE && call->lease == LEASE_RENEWED;
}

bool takes_lease(const struct call *call) {
    return call->verb == CALL_ACQUIRE || call->verb == CALL_RENEW;
}

/* A server sets the lease after the call was asked, so it ends no earlier than a lease after that. */
static int64_t asked_lease_end_ns(const struct promise_pass *pass, const struct call_event *ask) {
    int64_t lease_ms = lease_of_call(pass, &ask->asked);
    return lease_ms == PROMISE_ALWAYS ? PROMISE_ALWAYS : after_ms(ask->at_ns, lease_ms - grain_ms(pass));
}

int64_t end_under_way(const struct promise_pass *pass, const struct promise_owner *owner,
                      const struct call_event *ask) {
    return owner->renewed && is_renewed(&ask->asked) ? PROMISE_ALWAYS : asked_lease_end_ns(pass, ask);
}

int64_t end_beside_others(const struct promise_pass *pass, const struct promise_call *call) {
    int64_t end_ns = is_renewed(&call->ask->asked) ? PROMISE_ALWAYS : asked_lease_end_ns(pass, call->ask);
    for (const struct promise_call *each = &pass->calls[call->owner->began]; each < pass->calls + pass->now; each++) {
        if (!each->ask || each == call || each->owner != call->owner || !takes_lease(&each->ask->asked)) continue;
        if (each->answer && each->ask < call->ask) continue;
        int64_t other_ns = end_under_way(pass, call->owner, each->ask);
        if (other_ns < end_ns) end_ns = other_ns;
    }
    return end_ns;
}
