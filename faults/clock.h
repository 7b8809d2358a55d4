/* Wall clocks that are wrong on purpose: a server's or a client's. For clock-jump and clock-drift. */
#ifndef LOCKSTORM_FAULTS_CLOCK_H
#define LOCKSTORM_FAULTS_CLOCK_H

#include "faults/fault.h"

enum { CLOCK_NS_PER_MS = 1000000 };

/* Puts the clock forward by step_ns (back if below 0) and changes its rate. A server gets a key that will expire, if it
 * takes one. False with the way out when the clock cannot be set. */
bool clock_inject(struct fault_target *target, int64_t step_ns, int64_t drift_ppm, struct fault_report *report);

/* Reads the clock, and from a server how long that key has still to live: both must show what this fault and others
 * have made of it, and this one must have made a difference that can be seen. */
bool clock_prove(struct fault_target *target, struct fault_report *report);

/* Takes back what this fault has done; with `keep`, only the rate: the clock stays where it has come to. */
bool clock_heal(struct fault_target *target, bool keep, struct fault_report *report);

#endif
