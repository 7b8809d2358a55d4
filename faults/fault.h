/* A fault: something that really happens to a lock, done on purpose. One C file each, a struct fault.
 *
 * inject does it, prove looks whether it is in effect (from the outside: process state, a server's own words, a count)
 * and heal undoes it; healing twice is harmless. A fault knows processes and servers, never a lock. A fault that cannot
 * prove itself makes the trial inconclusive, so prove never answers from memory. Adding one: copy pause_client.c and
 * add a line to table.c. */
#ifndef LOCKSTORM_FAULTS_FAULT_H
#define LOCKSTORM_FAULTS_FAULT_H

#include <stdbool.h>

/* What it is done to. */
struct fault_target {
    int pid;
};

/* What happened, in words: what was seen, or why it failed. */
struct fault_report {
    char text[160];
};

struct fault {
    const char *name;    /* as on the command line */
    const char *summary; /* one line */
    const char *proof;   /* what prove looks at */
    const char *explanation;
    const char *source;
    bool (*inject)(const struct fault_target *target, struct fault_report *report);
    bool (*prove)(const struct fault_target *target, struct fault_report *report);
    bool (*heal)(const struct fault_target *target, struct fault_report *report);
};

/* All faults, sorted by name; ends with NULL. */
extern const struct fault *const FAULT_TABLE[];

/* NULL: no such fault. */
const struct fault *fault_find(const char *name);

#endif
