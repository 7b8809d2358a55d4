/* What a schedule's judge is told, in the order in which it happened (checkers/promises). */
#pragma once

#include "harness/library/library_state.h"

/* Adds a copy, with the schedule's time. Returns its index. */
uint32_t library_event_add(struct library_world *world, struct call_event event);
/* Looks at the servers how long the lock of each resource still lasts, and adds what has changed. */
void library_leases_note(struct library_world *world);
/* Notes what is left at the servers. */
void library_residue_note(struct library_world *world);
/* The name of a resource: "account", "account-2", ... */
const char *library_resource_name(int resource, char name[OFFER_NAME]);
