/* What a search of a library, and one schedule of it, came to, as JSON. All results are the caller's. */
#ifndef LOCKSTORM_LIBRARY_JSON_H
#define LOCKSTORM_LIBRARY_JSON_H

#include <jansson.h>

#include "harness/library_search/library_search.h"

json_t *library_offer_json(const struct library_offer *offer);
json_t *library_tally_json(const struct library_search *search);
json_t *library_groups_json(const struct library_tally *tally);
/* {"clients", "workload": lines, "schedule": lines}. */
json_t *library_schedule_json(const struct library_schedule *schedule);
/* The broken promises, with the events that show them. */
json_t *library_broken_json(const struct library_outcome *outcome);
/* The events of a schedule that was played on so many servers, an object each. */
json_t *library_events_json(const struct call_event *events, size_t count, int nodes);
/* The names of promises, by bits. */
json_t *library_promises_json(uint32_t promises);

#endif
