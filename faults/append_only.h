/* The append-only file of a redis-server that does not run: taking the last writes away, as a crash does that comes
 * before they were on the disk. */
#ifndef LOCKSTORM_FAULTS_APPEND_ONLY_H
#define LOCKSTORM_FAULTS_APPEND_ONLY_H

#include "faults/fault.h"

/* Cuts off the write that names `mark`, all after it and `lost` writes before it (a transaction counts as one), and
 * puts a write of `kept` in their place: a server that has this key has loaded all that was left. `directory` is the
 * server's. False with a sentence, and the file as it was: there is none, or it has not so many writes. */
bool append_only_cut(const char *directory, const char *mark, long lost, const char *kept, struct fault_report *report);

#endif
