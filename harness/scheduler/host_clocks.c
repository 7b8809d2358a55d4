/* The clocks of the hosts on which clients run. A host is the slot of its client's worker on the shared page: faults
 * write an offset, a drift and a suspension there, and the client computes what it reads. */
#include "harness/scheduler/scheduler_state.h"

/* The drift is 0 while the rest changes, so no reader combines the old drift with the new start. */
bool scheduler_set_host_clock(struct scheduler *scheduler, int task, int64_t offset_ns, int64_t drift_ppm) {
    struct task_slot *host = &scheduler->page->tasks[task];
    atomic_store_explicit(&host->wall_drift_ppm, 0, memory_order_release);
    atomic_store_explicit(&host->wall_since_ns, shared_page_mono_ns(scheduler->page), memory_order_release);
    atomic_store_explicit(&host->wall_offset_ns, offset_ns, memory_order_release);
    atomic_store_explicit(&host->wall_drift_ppm, drift_ppm, memory_order_release);
    return true;
}

bool scheduler_host_clock_error(const struct scheduler *scheduler, int task, int64_t *offset_ns, int64_t *drift_ppm) {
    const struct task_slot *host = &scheduler->page->tasks[task];
    int64_t since_ns = shared_page_mono_ns(scheduler->page) - atomic_load(&host->wall_since_ns);
    *drift_ppm = atomic_load(&host->wall_drift_ppm);
    *offset_ns = atomic_load(&host->wall_offset_ns) + shared_page_drift_ns(since_ns, *drift_ppm);
    return true;
}

int64_t scheduler_host_wall_ns(const struct scheduler *scheduler, int task) {
    return shared_page_host_wall_ns(scheduler->page, &scheduler->page->tasks[task]);
}

int64_t scheduler_host_mono_ns(const struct scheduler *scheduler, int task) {
    int64_t now_ns = shared_page_host_mono_ns(scheduler->page, &scheduler->page->tasks[task]);
    if (scheduler->driven[task].suspended == 0) return now_ns;
    return now_ns - (shared_page_mono_ns(scheduler->page) - scheduler->driven[task].suspended_at_ns);
}

int scheduler_set_host_suspended(struct scheduler *scheduler, int task, bool suspended) {
    int64_t now_ns = shared_page_mono_ns(scheduler->page), *since_ns = &scheduler->driven[task].suspended_at_ns;
    int before = scheduler->driven[task].suspended, left = reasons_count(&scheduler->driven[task].suspended, suspended);
    if (before == 0 && left == 1) *since_ns = now_ns;
    if (before == 1 && left == 0) atomic_fetch_add(&scheduler->page->tasks[task].suspended_ns, now_ns - *since_ns);
    return left;
}
