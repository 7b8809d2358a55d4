/* Making a schedule that violates something smaller, while it still violates one of the same required properties. */
#pragma once

#include "harness/search/search.h"

/* Makes search->found smaller: fewer clients, threads, calls and deviations, shorter durations, rounder numbers. Runs
 * at most settings->shrink_runs schedules. The result is *smallest, whose deviations the caller frees. True: it
 * violates the same; it is the last schedule that was run, of hosted programs with new ones. False: hosted programs
 * that were started for it alone do not show the violation again, so *smallest is search->found. */
bool search_shrink(struct search *search, struct schedule *smallest);

/* A control for a schedule: one call less, with which nothing of the same is violated. False: each call is needed. */
bool search_control(struct search *search, const struct schedule *smallest, struct schedule *control);
