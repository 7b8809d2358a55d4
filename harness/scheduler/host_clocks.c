#include "harness/scheduler/host_clocks.h"

#include "harness/scheduler/reasons.h"

/* The drift is 0 while the rest changes, so no reader combines the old drift with the new start. */
void host_clocks_set(const struct host_clocks *hosts, int task, int64_t offset_ns, int64_t drift_ppm) {
    struct task_slot *host = &hosts->page->tasks[task];
    atomic_store_explicit(&host->wall_drift_ppm, 0, memory_order_release);
    atomic_store_explicit(&host->wall_since_ns, shared_page_mono_ns(hosts->page), memory_order_release);
    atomic_store_explicit(&host->wall_offset_ns, offset_ns, memory_order_release);
    atomic_store_explicit(&host->wall_drift_ppm, drift_ppm, memory_order_release);
}

void host_clocks_error(const struct host_clocks *hosts, int task, int64_t *offset_ns, int64_t *drift_ppm) {
    const struct task_slot *host = &hosts->page->tasks[task];
    int64_t since_ns = shared_page_mono_ns(hosts->page) - atomic_load(&host->wall_since_ns);
    *drift_ppm = atomic_load(&host->wall_drift_ppm);
    *offset_ns = atomic_load(&host->wall_offset_ns) + shared_page_drift_ns(since_ns, *drift_ppm);
}

int64_t host_clocks_wall_ns(const struct host_clocks *hosts, int task) {
    return shared_page_host_wall_ns(hosts->page, &hosts->page->tasks[task]);
}

int64_t host_clocks_mono_ns(const struct host_clocks *hosts, int task) {
    int64_t now_ns = shared_page_host_mono_ns(hosts->page, &hosts->page->tasks[task]);
    if (hosts->suspended[task] == 0) return now_ns;
    return now_ns - (shared_page_mono_ns(hosts->page) - hosts->suspended_at_ns[task]);
}

int host_clocks_suspend(struct host_clocks *hosts, int task, bool suspended) {
    int64_t now_ns = shared_page_mono_ns(hosts->page), *since_ns = &hosts->suspended_at_ns[task];
    int before = hosts->suspended[task], left = reasons_count(&hosts->suspended[task], suspended);
    if (before == 0 && left == 1) *since_ns = now_ns;
    if (before == 1 && left == 0) atomic_fetch_add(&hosts->page->tasks[task].suspended_ns, now_ns - *since_ns);
    return left;
}
