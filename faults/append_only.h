/* The append-only file of a redis-server that does not run: taking the last writes away, as a crash does that comes
 * before they were on the disk. */
#ifndef LOCKSTORM_FAULTS_APPEND_ONLY_H
#define LOCKSTORM_FAULTS_APPEND_ONLY_H

#include "faults/fault.h"

struct append_only_cut {
    const char *key;  /* nobody else's */
    const char *last; /* what was written to it last */
    const char *left; /* what it is to hold instead */
    long lost;
};

/* Cuts off the write of `last` to the key, all after it and `lost` writes before it (a transaction counts as one), and
 * puts a write of `left` in their place: a server where the key holds that has loaded all that was left. `directory` is
 * the server's. False with a sentence, and the file as it was: there is none, or it has not so many writes. */
bool append_only_cut(const char *directory, const struct append_only_cut *cut, struct fault_report *report);

#endif
