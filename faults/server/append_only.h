/* The append-only file of a redis-server that is not running: cutting off the last writes, as a crash does before they
 * are on the disk. */
#pragma once

#include "faults/common/fault.h"

struct append_only_cut {
    const char *key;  /* no client uses it */
    const char *last; /* the value that was written to it last */
    const char *left; /* the value that it is to hold instead */
    long lost;        /* how many writes before that one are lost */
    int64_t since_s;  /* in its place, if not 0: all writes from this second on are lost (seconds since 1970) */
};

/* Cuts off the write of `last` to the key, all after it and `lost` writes before it (a transaction counts as one), and
 * puts a write of `left` in their place: a server in which the key holds that has loaded everything before. `directory`
 * is the server's, whose setting aof-timestamp-enabled is on where `since_s` is used. False with a sentence, and the
 * file unchanged: there is no file, it has too few writes, or no times. */
bool append_only_cut(const char *directory, const struct append_only_cut *cut, struct fault_report *report);
