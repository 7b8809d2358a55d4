/* Results of a search as JSON values, which the caller owns. docs/explore.md describes them. */
#pragma once

#include <jansson.h>

#include "harness/search/search.h"

json_t *groups_json(const struct search *search);
json_t *tally_json(const struct search *search);
/* An object of places (struct search_world), each with the number of faults that struck there, by kind. */
json_t *struck_json(const struct search *search);
/* {"clients": number, "workload": lines, "schedule": lines}. */
json_t *schedule_json(const struct choice_space *space, const struct schedule *schedule);
/* The names of the properties that an outcome violates, and of those that it violates in a required sort. */
json_t *violated_json(const struct search_world *world, const struct search_outcome *outcome);
json_t *broken_json(const struct search_world *world, const struct search_outcome *outcome);
