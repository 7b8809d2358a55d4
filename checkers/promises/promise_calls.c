#include "checkers/promises/promise_rule.h"

#include <assert.h>

bool is_under_way(const struct promise_call *call) {
    return call->ask && !call->answer;
}

struct promise_call *answered_call(const struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    if (event->call >= pass->now || !pass->calls[event->call].ask) return NULL;
    struct promise_call *call = &pass->calls[event->call];
    return call->answer == pass->now ? call : NULL; /* a second answer to a call is no answer */
}

struct promise_call *granted_call(const struct promise_pass *pass) {
    struct promise_call *call = answered_call(pass);
    bool granted = call && call->ask->asked.verb == CALL_ACQUIRE && pass->event->outcome == OUTCOME_OK;
    return granted ? call : NULL;
}

/* --- ask --- */

static void ask_lease(struct promise_pass *pass, struct promise_call *call) {
    int64_t end_ns = end_under_way(pass, call->owner, call->ask);
    int64_t lease_ms = lease_of_call(pass, &call->ask->asked);
    if (end_ns < call->owner->end_ns) call->owner->end_ns = end_ns;
    if (lease_ms != PROMISE_ALWAYS) call->resource->longest_ms = latest(call->resource->longest_ms, lease_ms);
}

static void ask_acquire(struct promise_pass *pass, struct promise_call *call) {
    struct promise_owner *owner = call->owner;
    const struct call *asked = &call->ask->asked;
    if (call->nothing) owner->began = pass->now;
    owner->watched = is_renewed(asked) || (owner->watched && !call->nothing);
    /* After a wait that timed out, or without a majority, a library takes back what it was granted. */
    if (asked->wait == WAIT_TIME || pass->facts->nodes > 1) note_giving_back(owner->client);
    owner->pending++;
    owner->acquires++;
    ask_lease(pass, call);
}

static void ask_release(struct promise_owner *owner, enum call_mode mode) {
    note_giving_back(owner->client);
    owner->releases++;
    owner->releasing++;
    if (owner->least[mode] > 0) owner->least[mode]--;
    /* The watchdog may have set a shorter lease than the grants asked for that stay without it. */
    if (owner->mixed) doubt_holds(owner, "one of its leases may have been shorter");
}

void call_ask(struct promise_pass *pass) {
    const struct call *asked = &pass->event->asked;
    struct promise_resource *resource = resource_of(pass, asked->resource);
    struct promise_owner *owner = owner_of(pass, asked);
    struct promise_call *call = &pass->calls[pass->now];
    bool alone = !may_hold(owner);
    *call = (struct promise_call){
        .ask = pass->event,
        .owner = owner,
        .resource = resource,
        .certain = holds_in_mode(pass, owner, asked->mode),
        .alone = alone,
        .nothing = alone && owner->pending == 0,
        .crowded = owner->pending > 0,
        .releasing = owner->releasing > 0,
        .acquires = owner->acquires,
        .releases = owner->releases,
        .doubts = owner->doubts,
        .disturbances = pass->disturbance_count,
        .disturbed = is_disturbed(pass, owner->client),
        .token_floor = resource->token,
        .token_from = resource->token_event,
    };
    switch (asked->verb) {
    case CALL_ACQUIRE: ask_acquire(pass, call); break;
    case CALL_RELEASE: ask_release(owner, asked->mode); break;
    case CALL_RENEW:
        note_giving_back(owner->client);
        ask_lease(pass, call);
        break;
    case CALL_CANCEL:
        note_giving_back(owner->client);
        if (asked->cancels < pass->now && pass->calls[asked->cancels].ask)
            pass->calls[asked->cancels].cancelled = pass->now;
        break;
    case CALL_IS_HELD:
    case CALL_WORK:
    case CALL_REQUEST: break;
    }
}

/* --- answer --- */

static void answer_acquire(struct promise_pass *pass, struct promise_call *call, const struct call_event *event) {
    struct promise_owner *owner = call->owner;
    assert(owner->pending > 0);
    owner->pending--;
    if (event->outcome == OUTCOME_OK) hold_grant(pass, call);
    else if (event->outcome == OUTCOME_UNKNOWN || call->disturbed) hold_maybe(pass, call, 1);
    /* What the library has given up may come late, or be given back late. */
    int64_t until_ns = disturbances_end_ns(pass, owner->client);
    if (event->outcome != OUTCOME_OK && until_ns > event->at_ns) doubt_client_until(pass, owner->client, until_ns);
}

static void answer_release(struct promise_call *call, const struct call_event *event) {
    struct promise_owner *owner = call->owner;
    enum call_mode mode = call->ask->asked.mode;
    assert(owner->releasing > 0);
    owner->releasing--;
    if (event->outcome == OUTCOME_OK && owner->most[mode] > 0) owner->most[mode]--;
    if (event->outcome == OUTCOME_REFUSED) doubt_holds(owner, "a release of it was refused");
    assert(owner->least[mode] <= owner->most[mode]);
}

void call_answer(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    if (event->call >= pass->now || !is_under_way(&pass->calls[event->call])) return;
    struct promise_call *call = &pass->calls[event->call];
    struct promise_owner *owner = call->owner;
    const struct call *asked = &call->ask->asked;
    call->answer = pass->now;
    owner->touched_ns = event->at_ns;
    switch (asked->verb) {
    case CALL_ACQUIRE: answer_acquire(pass, call, event); break;
    case CALL_RELEASE: answer_release(call, event); break;
    case CALL_RENEW:
        if (event->outcome == OUTCOME_OK && !owner->renewed && call->certain && call->doubts == owner->doubts)
            owner->end_ns = end_beside_others(pass, call);
        break;
    case CALL_IS_HELD:
    case CALL_CANCEL: /* a call that cannot be cancelled goes on */
        if (event->outcome == OUTCOME_REFUSED && asked->cancels < pass->now) pass->calls[asked->cancels].cancelled = 0;
        break;
    case CALL_WORK:
    case CALL_REQUEST: break;
    }
}
