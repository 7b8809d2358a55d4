/* A server's replicas, for faults that part them from it: who is there, and waiting until they are back. */
#ifndef LOCKSTORM_FAULTS_REPLICAS_H
#define LOCKSTORM_FAULTS_REPLICAS_H

#include "faults/fault.h"

/* How many replicas the server at this socket has connected; 0 with a sentence when it does not say. */
int replicas_connected(const char *socket, struct fault_report *report);

/* Nobody waits for their acknowledgements from here on. */
void replicas_leave(const struct fault_target *target);

/* Waits until so many have synchronised with the target again; from then on they are waited for. False with a sentence
 * when they do not come. */
bool replicas_return(const struct fault_target *target, int replicas, struct fault_report *report);

#endif
