/* A server's replicas, for faults that separate them from it: counting them, and waiting until they are back. */
#pragma once

#include "faults/common/fault.h"

/* How many replicas the server at this socket has connected; 0 with a sentence when it does not say. */
int replicas_connected(const char *socket, struct fault_report *report);

/* From here on no acknowledgement by a replica of the target is waited for. */
void replicas_leave(const struct fault_target *target);

/* Waits until that many replicas have synchronised with the target again; from then on their acknowledgements are
 * waited for. False with a sentence when they do not return. */
bool replicas_return(const struct fault_target *target, int replicas, struct fault_report *report);
