/* What faults and late messages do to clients, and to the certainty of their holds. */
#pragma once

#include "checkers/promises/promise_pass.h"

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

bool has_ended(const struct promise_client *client);

/* May a message to the client be lost, with or without a connection? */
bool may_have_missed(const struct promise_client *client);

/* Did a server, or a clock, fail so that no rule of waiting can be asked for? */
bool servers_are_unreliable(const struct promise_pass *pass);

/* The owner's holds are no longer certain. */
void doubt_holds(struct promise_owner *owner);

/* An earlier call of the client may end or shorten its holds until `until_ns`. */
void doubt_client_until(struct promise_pass *pass, struct promise_client *client, int64_t until_ns);

/* The client asks for what may give back or shorten a hold. From now on a command that is late may do so to a later
 * hold: it may be an earlier hold's release, or its watchdog's. */
void note_giving_back(struct promise_client *client);
