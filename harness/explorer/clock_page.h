/* The clock of one redis-server, in a page that it maps: it stands where the explorer has put it. The server runs with
 * liblockstorm-clock.so preloaded (clock_preload.c) and the page's file named in CLOCK_PAGE_VARIABLE. */
#ifndef LOCKSTORM_EXPLORER_CLOCK_PAGE_H
#define LOCKSTORM_EXPLORER_CLOCK_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define CLOCK_PAGE_VARIABLE "LOCKSTORM_CLOCK_PAGE"

struct clock_page {
    _Atomic int64_t wall_ns; /* since 1970 */
};

#endif
