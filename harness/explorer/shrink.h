/* Making a schedule that violates something smaller, while it still violates one of the same required properties. */
#ifndef LOCKSTORM_EXPLORER_SHRINK_H
#define LOCKSTORM_EXPLORER_SHRINK_H

#include "harness/explorer/search.h"

/* Shrinks search->found, which schedule `number` gave: fewer clients (*clients), fewer deviations, shorter durations.
 * Runs at most settings->shrink_runs schedules. The result is search->schedule. */
void search_shrink(struct schedule_search *search, uint64_t number, int *clients);

#endif
