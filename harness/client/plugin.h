/* A lock that comes as a shared object (harness/client/lockstorm.h), loaded into the process that hosts it. */
#pragma once

#include "harness/locks/common/lock.h"

enum { PLUGIN_REASON = 512 };

struct plugin {
    void *handle; /* for dlsym, dlinfo */
    const struct lock_type *lock;
    const char *statics; /* its writable memory: its static variables, among others */
    size_t statics_length;
    char *statics_kept; /* a copy made when it was loaded */
};

/* Loads a plug-in, for as long as the process lives. False when the file is not a plug-in, with the reason: a clause
 * about "it". The plug-in's constructors run, so a process that must not crash loads none. */
bool plugin_load(const char *path, struct plugin *plugin, char reason[PLUGIN_REASON]);

/* Whether its static variables are as they were when it was loaded; if not, *offset is the address in the file of the
 * first change. */
bool plugin_statics_same(const struct plugin *plugin, size_t *offset);
