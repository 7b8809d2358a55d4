/* Setting a server's or a client's wall clock wrong, for clock-jump and clock-drift. */
#pragma once

#include "faults/common/fault.h"

enum { CLOCK_NS_PER_MS = 1000000 };

/* Moves the clock forward by step_ns (back if below 0) and changes its rate. A server gets a key that will expire, if
 * it accepts one. False with a sentence when the clock cannot be set. */
bool clock_inject(struct fault_target *target, int64_t step_ns, int64_t drift_ppm, struct fault_report *report);

/* Reads the clock, and from a server the remaining life of that key: both must show what this fault and others have
 * set, and this fault's share must be larger than the uncertainty of the reading. */
bool clock_prove(struct fault_target *target, struct fault_report *report);

/* Takes back what this fault has done; with the option "keep", only the rate: the clock stays where it is. */
bool clock_heal(struct fault_target *target, struct fault_report *report);
