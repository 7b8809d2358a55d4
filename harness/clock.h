/* The machine's clocks, read so that no clock fault can touch them: straight from the kernel's vDSO, past any library
 * that is preloaded to lie about the time. */
#ifndef LOCKSTORM_CLOCK_H
#define LOCKSTORM_CLOCK_H

#include <stdint.h>

enum { CLOCK_NS_PER_US = 1000, CLOCK_NS_PER_MS = 1000000, CLOCK_NS_PER_S = 1000000000 };

/* CLOCK_MONOTONIC in ns: goes on while processes are stopped, stands while the host is suspended. */
int64_t clock_real_mono_ns(void);
/* CLOCK_REALTIME in ns since 1970. */
int64_t clock_real_wall_ns(void);

#endif
