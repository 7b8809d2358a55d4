/* Results of a search as JSON values, which the caller owns. */
#ifndef LOCKSTORM_EXPLORER_SEARCH_JSON_H
#define LOCKSTORM_EXPLORER_SEARCH_JSON_H

#include <jansson.h>

#include "harness/explorer/search.h"

json_t *groups_json(const struct search_tally *tally);
json_t *tally_json(const struct schedule_search *search);
/* An object of checkpoints, each with the number of faults that struck behind it, by kind; {} where none struck. */
json_t *struck_json(const struct schedule_search *search);
/* The lines of a schedule. */
json_t *schedule_json(const struct schedule *schedule);
/* The names of the properties that an outcome violates, and of those that it violates in a required sort. */
json_t *violated_json(const struct search_outcome *outcome);
json_t *broken_json(const struct search_outcome *outcome);

#endif
