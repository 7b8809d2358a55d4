/* The clock of one server, in a file that it maps: it stands where the trial or the explorer has put it. A redis-server
 * runs with liblockstorm-preload.so loaded into it (clock.c) and the file named in CLOCK_PAGE_VARIABLE, and so does
 * ZooKeeper, with CLOCK_ALL_VARIABLE set: then it is the monotonic clock as well. PostgreSQL runs under libfaketime,
 * which reads the first line of the same file. */
#ifndef LOCKSTORM_PRELOAD_CLOCK_PAGE_H
#define LOCKSTORM_PRELOAD_CLOCK_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define CLOCK_PAGE_VARIABLE "LOCKSTORM_CLOCK_PAGE"
#define CLOCK_ALL_VARIABLE "LOCKSTORM_CLOCK_ALL"

enum { CLOCK_PAGE_TEXT = 64 };

struct clock_page {
    char text[CLOCK_PAGE_TEXT]; /* the same as libfaketime wants it, a line; empty when nobody reads it */
    _Atomic int64_t wall_ns;    /* since 1970 */
};

#endif
