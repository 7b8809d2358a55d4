/* What rules may ask of the pass, in the order of the files that answer, and what a rule is. */
#pragma once

#include "checkers/promises/promise_pass.h"

/* A rule: a function for each kind of event that it wants, called after the pass has taken the event in. It calls
 * promise_break where a promise is broken. */
struct promise_rule {
    void (*on[EVENT_KINDS])(struct promise_pass *pass);
    /* May be NULL. Called before the event behind an EVENT_IDLE is taken in, if time has passed between them:
     * everything was as it is known until that event's stamp. */
    void (*idle_passes)(struct promise_pass *pass);
};

/* --- Calls: what is known when one is asked, and what its answer changes --- */

/* Take in an EVENT_ASK, an EVENT_ANSWER. */
void call_ask(struct promise_pass *pass);
void call_answer(struct promise_pass *pass);

bool is_under_way(const struct promise_call *call);

/* The call that the present ANSWER answers; NULL: it answers no call. */
struct promise_call *answered_call(const struct promise_pass *pass);
/* ... if that is an acquire which was answered ok; else NULL. */
struct promise_call *granted_call(const struct promise_pass *pass);

/* --- What faults and late messages do to clients, and to the certainty of their holds --- */

/* Takes in an EVENT_FAULT or EVENT_LATE. */
void disturbance_take(struct promise_pass *pass);

/* Is it a disturbance of the client, or of a server? */
bool disturbs_client(const struct promise_disturbance *disturbance, const struct promise_client *client);

/* Does it cost more than time? */
bool is_hard(const struct call_event *event);

/* For how long the client, or a server, was disturbed between the two, in ns, each disturbance for itself.
 * PROMISE_ALWAYS: one of them was hard or has no end. */
int64_t disturbed_ns(const struct promise_pass *pass, const struct promise_client *client, int64_t from_ns,
                     int64_t to_ns);

/* ... and, where one client may hold up another at a server, for how long others were late or stood still. */
int64_t held_up_ns(const struct promise_pass *pass, const struct promise_client *client, int64_t from_ns,
                   int64_t to_ns);

/* When the last disturbance of the client ends; INT64_MIN: there was none. */
int64_t disturbances_end_ns(const struct promise_pass *pass, const struct promise_client *client);
bool is_disturbed(const struct promise_pass *pass, const struct promise_client *client);

/* Replies to its client were lost while the call was under way, and nothing else disturbed it. */
bool lost_only_replies(const struct promise_pass *pass, const struct promise_call *call);

bool has_ended(const struct promise_client *client);

/* May a message to the client be lost, with or without a connection? */
bool may_have_missed(const struct promise_client *client);

/* Did a server, or a clock, fail so that no rule of waiting can be asked for? */
bool servers_are_unreliable(const struct promise_pass *pass);

#define PROMISE_MAY_HAVE_ENDED "an earlier command of its client may have ended it"
#define PROMISE_SERVER_DOWN "a server that it was granted by may be down"

/* The owner's holds are no longer certain; `why` outlives the pass. */
void doubt_holds(struct promise_owner *owner, const char *why);

/* An earlier call of the client may end or shorten its holds until `until_ns`. */
void doubt_client_until(struct promise_pass *pass, struct promise_client *client, int64_t until_ns);

/* The client asks for what may give back or shorten a hold. From now on a command that is late may do so to a later
 * hold: it may be an earlier hold's release, or its watchdog's. */
void note_giving_back(struct promise_client *client);

/* --- What owners hold, certainly and possibly, and what a grant adds --- */

bool holds_certainly(const struct promise_pass *pass, const struct promise_owner *owner);
bool holds_in_mode(const struct promise_pass *pass, const struct promise_owner *owner, enum call_mode mode);
/* Why it does not, though it was granted the lock in that mode: a clause. */
const char *uncertainty_text(const struct promise_pass *pass, const struct promise_owner *owner, enum call_mode mode);
bool may_hold(const struct promise_owner *owner);
static inline bool excludes_readers(enum call_mode mode) {
    return mode == MODE_EXCLUSIVE || mode == MODE_WRITE;
}

/* The present event answers the call, an acquire, so that its owner may have been granted the lock so often. */
void hold_maybe(struct promise_pass *pass, const struct promise_call *call, int grants);
/* ... with ok. */
void hold_grant(struct promise_pass *pass, struct promise_call *call);

/* --- How long leases last, and the library's other numbers. Times and durations saturate at PROMISE_ALWAYS --- */

static inline int64_t latest(int64_t one_ns, int64_t other_ns) {
    return one_ns > other_ns ? one_ns : other_ns;
}

int64_t ms_of(int64_t ns);
int64_t after_ms(int64_t from_ns, int64_t ms);

/* When the key ends that an EVENT_LEASE has seen; 0: it has no end, or is not there. */
int64_t key_ends_ns(const struct call_event *lease);
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

/* --- What a call may have left at the servers, and for how long --- */

/* For how long the resource's lease key may live from now on because of this call, in ms; PROMISE_ALWAYS: without end;
 * 0: a right library has nothing there because of it. */
int64_t trace_ms(const struct promise_pass *pass, const struct promise_call *call);

bool leaves_trace(const struct promise_call *call);

/* Of a call under way, at a quiet moment: none of its messages is missing, and it needs one key. It has nothing then,
 * or it would have been answered. */
bool waits_for_all(const struct promise_pass *pass, const struct promise_call *call);

/* It was answered ok and its owner may still hold, or it is under way and its client disturbed or ended. */
bool is_outstanding(const struct promise_pass *pass, const struct promise_call *call);

/* It was cancelled, or its answer says so, and it was not granted. */
bool was_cancelled(const struct promise_pass *pass, const struct promise_call *call);
bool was_refused(const struct promise_pass *pass, const struct promise_call *call);
