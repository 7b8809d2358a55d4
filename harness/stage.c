#include "harness/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/clock.h"

static const int64_t EPOCH_NS = 1767225600 * (int64_t)CLOCK_NS_PER_S; /* 2026-01-01 00:00:00 UTC */

static struct stage *map_file(int fd) {
    void *map = mmap(NULL, sizeof(struct stage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

bool stage_create(const char *path, enum history_time time, uint64_t seed, struct history_error *error) {
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int full = fd < 0 ? errno : posix_fallocate(fd, 0, sizeof(struct stage));
    struct stage *stage = full ? NULL : map_file(fd);
    int reason = full ? full : errno;
    if (fd >= 0) close(fd);
    if (!stage) {
        snprintf(error->text, sizeof error->text, "%.160s: %s", path, strerror(reason));
        return false;
    }
    stage->version = STAGE_VERSION;
    stage->time = (uint32_t)time;
    stage->seed = seed;
    stage->wall_epoch_ns = EPOCH_NS;
    atomic_init(&stage->proxy_deadline_ns, INT64_MAX);
    stage_close(stage);
    return true;
}

struct stage *stage_open(const char *path, struct history_error *error) {
    struct stat stat = {0};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool fits = fd >= 0 && fstat(fd, &stat) == 0 && stat.st_size == (off_t)sizeof(struct stage);
    struct stage *stage = fits ? map_file(fd) : NULL;
    const char *reason = fd < 0 || (fits && !stage) ? strerror(errno) : "not a stage of this build";
    if (fd >= 0) close(fd);
    if (stage && stage->version == STAGE_VERSION) return stage;
    stage_close(stage);
    snprintf(error->text, sizeof error->text, "%.160s: %s", path, reason);
    return NULL;
}

void stage_close(struct stage *stage) {
    if (stage) munmap(stage, sizeof *stage);
}

int64_t stage_mono_ns(const struct stage *stage) {
    if (stage->time == HISTORY_TIME_REAL) return clock_real_mono_ns();
    return atomic_load_explicit(&stage->mono_ns, memory_order_acquire);
}

int64_t stage_host_mono_ns(const struct stage *stage, const struct strand_place *host) {
    int64_t suspended_ns = host ? atomic_load_explicit(&host->suspended_ns, memory_order_acquire) : 0;
    return stage_mono_ns(stage) - suspended_ns;
}

/* In two parts: a year in ns times a million would not fit. */
int64_t stage_drift_ns(int64_t duration_ns, int64_t drift_ppm) {
    return duration_ns / 1000000 * drift_ppm + duration_ns % 1000000 * drift_ppm / 1000000;
}

int64_t stage_host_wall_ns(const struct stage *stage, const struct strand_place *host) {
    int64_t wall_ns = stage_wall_ns(stage);
    if (!host) return wall_ns;
    int64_t drift_ppm = atomic_load_explicit(&host->wall_drift_ppm, memory_order_acquire);
    if (drift_ppm) wall_ns += stage_drift_ns(stage_mono_ns(stage) - atomic_load(&host->wall_since_ns), drift_ppm);
    return wall_ns + atomic_load_explicit(&host->wall_offset_ns, memory_order_acquire);
}

int64_t stage_wall_ns(const struct stage *stage) {
    if (stage->time == HISTORY_TIME_REAL) return clock_real_wall_ns();
    return stage->wall_epoch_ns + stage_mono_ns(stage);
}
