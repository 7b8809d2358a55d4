/* The clock of one server, in a file that the server maps. It shows the time that the trial or the explorer has
 * written. A redis-server has liblockstorm-preload.so loaded into it (preload_clock.c), and CLOCK_PAGE_VARIABLE names
 * the file; so does a ZooKeeper, with CLOCK_ALL_VARIABLE set: then the file is the monotonic clock as well. PostgreSQL
 * runs under libfaketime, which reads the first line of the same file. */
#ifndef LOCKSTORM_PRELOAD_CLOCK_PAGE_H
#define LOCKSTORM_PRELOAD_CLOCK_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define CLOCK_PAGE_VARIABLE "LOCKSTORM_CLOCK_PAGE"
#define CLOCK_ALL_VARIABLE "LOCKSTORM_CLOCK_ALL"

enum { CLOCK_PAGE_TEXT = 64 };

struct clock_page {
    char text[CLOCK_PAGE_TEXT]; /* the same as a line for libfaketime; empty when no server reads it */
    _Atomic int64_t wall_ns;    /* since 1970 */
};

#endif
