/* Making a schedule of a library that breaks a promise smaller, while it still breaks one of the same promises. */
#ifndef LOCKSTORM_LIBRARY_SHRINK_H
#define LOCKSTORM_LIBRARY_SHRINK_H

#include "harness/library_search/library_search.h"

/* Shrinks search->found: fewer deviations, clients, threads and calls, rounder numbers. Plays at most
 * settings->shrink_runs schedules. The result is search->found with its outcome; *anew: whether it breaks the promise
 * with new programs, which were started for it alone. */
void library_shrink(struct library_search *search, uint64_t seed, bool *anew);

/* A control for search->found: one call less, or a number less, with which the promise holds. False: there is none. */
bool library_control(struct library_search *search, uint64_t seed, struct library_schedule *control);

#endif
