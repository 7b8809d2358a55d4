/* Until nothing happens by itself any more. */
#pragma once

#include "harness/library/library_state.h"

/* Lets every program that has something to do run until it is quiet, and takes what it says and sends. What only opens
 * or keeps up a connection goes on at once. False with world->reason. */
bool library_settle(struct library_world *world);
/* The next moment of the page's clock at which something happens by itself; INT64_MAX: never. */
int64_t library_next_ns(const struct library_world *world);
/* Moves the clock of everything to that moment. */
void library_clock_move(struct library_world *world, int64_t mono_ns);
/* Everything arrives in order, and time passes, until the control question of the client is answered. False: it was
 * not, within limit_ms of the page's clock, or world->reason. */
bool library_drain(struct library_world *world, int client, int64_t limit_ms);
/* The same until that moment. `notes`: the servers are asked for leases. */
bool library_drain_until(struct library_world *world, int64_t mono_ns, bool notes);

bool library_is_paused(const struct library_world *world, int client);
/* Whether the oldest message goes on when it is chosen. */
bool library_request_is_due(const struct library_world *world, const struct library_link *link);
bool library_answer_is_due(const struct library_world *world, const struct library_link *link);
/* Whether no message is on its way that nothing holds. */
bool library_is_quiet(const struct library_world *world);
/* The oldest request reaches its server, and what the server says at once is there. */
void library_request_arrives(struct library_world *world, struct library_link *link);
