/* How clients differ from each other and from turn to turn, drawn from a seed: the same in the explorer and in a storm.
 * Decision 0055. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "harness/scheduler/random.h"

/* One time in `of`. */
bool drawn_one_in(struct random *random, uint64_t of);
/* From 0 to most_ms; 0 if that is negative. */
int64_t drawn_ms(struct random *random, int64_t most_ms);
/* Up to nine tenths of a lease, which nothing but a fault makes longer than the lease; where a watchdog renews it, up
 * to two and a half. Often it is short or 0: then others are still on their way. */
int64_t drawn_work_ms(struct random *random, int64_t lease_ms, bool renews);
/* How long a client waits for the lock: half of them wait_ms, the others less; some try only once. */
int64_t drawn_patience_ms(struct random *random, int64_t lease_ms, int64_t wait_ms);
