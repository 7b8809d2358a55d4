/* Questions to hosted programs, and their answers (docs/adapters.md). */
#pragma once

#include "harness/library/library_state.h"

/* The keys of a call's question besides id; the caller's. */
json_t *calls_body(const struct library_offer *offer, const struct call *call);
/* Asks the next call of a thread, or begins its work. */
bool calls_ask_next(struct library_world *world, int client, int thread);
/* Cancels the call of a thread that is under way. */
bool calls_cancel(struct library_world *world, int client, int thread);
/* Asks what is no call of a thread; `body`: its keys besides id, which this takes. */
bool calls_ask_control(struct library_world *world, int client, json_t *body);
/* Takes all lines that a client's program has written. True: there were some. */
bool calls_hear(struct library_world *world, int client);
