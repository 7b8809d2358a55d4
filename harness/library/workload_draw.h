/* Draws a workload from a seed, shaped by what the library offers: nested acquires, leases given and renewed, waits of
 * every kind, several threads and lock objects, reads within writes, units, cancelled waits. */
#pragma once

#include "harness/library/library_offer.h"
#include "harness/scheduler/random.h"

void workload_draw(struct workload *workload, const struct library_offer *offer, int64_t lease_ms, uint64_t seed);
