#include "harness/scheduler/shared_page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/stamps.h"

static size_t page_bytes(uint32_t task_count) {
    return sizeof(struct shared_page) + (task_count - SHARED_PAGE_TASKS) * sizeof(struct task_slot);
}

static struct shared_page *map_file(int fd, size_t bytes) {
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

bool shared_page_create(const char *path, enum history_time time, uint64_t seed, int tasks,
                        struct history_error *error) {
    if (tasks > SHARED_PAGE_TASKS_MOST) return history_fail(error, "%d tasks are too many for a shared page", tasks);
    uint32_t task_count = (uint32_t)(tasks < SHARED_PAGE_TASKS ? SHARED_PAGE_TASKS : tasks);
    size_t bytes = page_bytes(task_count);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int full = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
    struct shared_page *page = full ? NULL : map_file(fd, bytes);
    int reason = full ? full : errno;
    if (fd >= 0) close(fd);
    if (!page) return history_fail(error, "%.160s: %s", path, strerror(reason));
    page->version = SHARED_PAGE_VERSION;
    page->time = (uint32_t)time;
    page->seed = seed;
    page->task_count = task_count;
    page->wall_epoch_ns = CLOCK_EPOCH_NS;
    atomic_init(&page->proxy_deadline_ns, INT64_MAX);
    shared_page_close(page);
    return true;
}

struct shared_page *shared_page_open(const char *path, struct history_error *error) {
    struct stat stat = {0};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool fits = fd >= 0 && fstat(fd, &stat) == 0 && stat.st_size >= (off_t)sizeof(struct shared_page);
    struct shared_page *page = fits ? map_file(fd, (size_t)stat.st_size) : NULL;
    const char *reason = fd < 0 || (fits && !page) ? strerror(errno) : "not a page of this build";
    if (fd >= 0) close(fd);
    bool is_whole = page && page->version == SHARED_PAGE_VERSION && page->task_count >= SHARED_PAGE_TASKS &&
                    page_bytes(page->task_count) == (size_t)stat.st_size;
    if (is_whole) return page;
    if (page) munmap(page, (size_t)stat.st_size);
    history_fail(error, "%.160s: %s", path, reason);
    return NULL;
}

void shared_page_close(struct shared_page *page) {
    if (page) munmap(page, page_bytes(page->task_count));
}

int64_t shared_page_mono_ns(const struct shared_page *page) {
    if (!shared_page_is_virtual(page)) return clock_real_mono_ns();
    return atomic_load_explicit(&page->mono_ns, memory_order_acquire);
}

int64_t shared_page_suspended_ns(const struct task_slot *host) {
    return host ? atomic_load_explicit(&host->suspended_ns, memory_order_acquire) : 0;
}

int64_t shared_page_host_mono_ns(const struct shared_page *page, const struct task_slot *host) {
    int64_t suspended_ns = shared_page_suspended_ns(host);
    return shared_page_mono_ns(page) - suspended_ns;
}

int64_t shared_page_trial_ns(const struct task_slot *host, int64_t host_ns) {
    int64_t suspended_ns = shared_page_suspended_ns(host);
    return host_ns > INT64_MAX - suspended_ns ? INT64_MAX : host_ns + suspended_ns;
}

/* In two parts, because a year in ns times a million does not fit into 64 bits. */
int64_t shared_page_drift_ns(int64_t duration_ns, int64_t drift_ppm) {
    return duration_ns / 1000000 * drift_ppm + duration_ns % 1000000 * drift_ppm / 1000000;
}

/* What the host's wall clock is off, at that time. */
static int64_t wall_error_ns(const struct task_slot *host, int64_t mono_ns) {
    if (!host) return 0;
    int64_t drift_ppm = atomic_load_explicit(&host->wall_drift_ppm, memory_order_acquire), gained_ns = 0;
    if (drift_ppm) gained_ns = shared_page_drift_ns(mono_ns - atomic_load(&host->wall_since_ns), drift_ppm);
    return gained_ns + atomic_load_explicit(&host->wall_offset_ns, memory_order_acquire);
}

int64_t shared_page_host_wall_ns(const struct shared_page *page, const struct task_slot *host) {
    return shared_page_wall_ns(page) + wall_error_ns(host, shared_page_mono_ns(page));
}

void shared_page_stamp(const struct shared_page *page, const struct task_slot *host, int64_t *mono_ns,
                       int64_t *wall_ns) {
    if (shared_page_is_virtual(page)) {
        *mono_ns = atomic_load_explicit(&page->mono_ns, memory_order_acquire);
        *wall_ns = page->wall_epoch_ns + *mono_ns;
    } else {
        stamps_take(mono_ns, wall_ns);
    }
    if (host) *wall_ns += wall_error_ns(host, *mono_ns);
}

int64_t shared_page_wall_ns(const struct shared_page *page) {
    if (!shared_page_is_virtual(page)) return clock_real_wall_ns();
    return page->wall_epoch_ns + shared_page_mono_ns(page);
}
