/* The clocks of the hosts on which clients run. A host is the slot of its client's worker on the shared page: faults
 * write an offset, a drift and a suspension there, and the client computes what it reads. */
#ifndef LOCKSTORM_HOST_CLOCKS_H
#define LOCKSTORM_HOST_CLOCKS_H

#include "harness/scheduler/shared_page.h"

/* Of each of the page's tasks; all zero: no host is suspended. */
struct host_clocks {
    struct shared_page *page;
    int *suspended;           /* number of reasons */
    int64_t *suspended_at_ns; /* by the trial's clock; only while there is a reason */
};

/* From now on the wall clock of a task's host is offset_ns ahead of the trial's and gains drift_ppm. */
void host_clocks_set(const struct host_clocks *hosts, int task, int64_t offset_ns, int64_t drift_ppm);
/* How far that clock is ahead now, and its drift. */
void host_clocks_error(const struct host_clocks *hosts, int task, int64_t *offset_ns, int64_t *drift_ppm);
/* What the host's wall clock shows, and how far its monotonic clock has come, also while the host is suspended. */
int64_t host_clocks_wall_ns(const struct host_clocks *hosts, int task);
int64_t host_clocks_mono_ns(const struct host_clocks *hosts, int task);
/* The host's monotonic clock stands still from true to false. Returns the number of reasons that are left. */
int host_clocks_suspend(struct host_clocks *hosts, int task, bool suspended);

#endif
