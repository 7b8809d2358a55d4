/* What a library offers, and what one schedule of it came to, as JSON, which the caller owns. */
#pragma once

#include <jansson.h>

#include "harness/library/library_state.h"

json_t *offer_json(const struct library_offer *offer);
/* The broken promises, with the events that show them. */
json_t *broken_promises_json(const struct broken_promise *broken, int count);
/* The events of a schedule that was played on so many servers, an object each. */
json_t *call_events_json(const struct call_event *events, size_t count, int nodes);
