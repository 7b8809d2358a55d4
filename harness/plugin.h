/* A lock that comes as a shared object (harness/lockstorm.h), loaded into the process that hosts it. */
#ifndef LOCKSTORM_PLUGIN_H
#define LOCKSTORM_PLUGIN_H

#include "harness/locks/lock.h"

enum { PLUGIN_REASON = 512 };

struct plugin {
    void *handle; /* for dlsym, dlinfo */
    const struct lock_type *lock;
    const char *statics; /* what of its memory can be written to: its static variables, among others */
    size_t statics_length;
    char *statics_kept; /* as they were when it was loaded */
};

/* Loads it, for as long as the process lives. False when it is none, with the reason: a clause about "it". Its
 * constructors run, so a process that must not crash loads nothing. */
bool plugin_load(const char *path, struct plugin *plugin, char reason[PLUGIN_REASON]);

/* Whether its static variables are as they were when it was loaded; if not, *offset is where the first change stands,
 * as an address in the file. */
bool plugin_statics_same(const struct plugin *plugin, size_t *offset);

#endif
