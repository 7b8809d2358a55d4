#include "harness/scheduler/server_clocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/process/preload/clock_page.h"
#include "harness/scheduler/clock.h"
#include "harness/scheduler/scheduler_state.h"

struct server_clock {
    int fd;                  /* -1: the machine's clock */
    struct clock_page *page; /* the same file, mapped */
    int64_t offset_ns;
    int64_t drift_ppm, since_ns; /* the drift counts from this stamp of the trial's clock on */
};

struct server_clocks {
    const struct shared_page *page;
    int count;
    struct server_clock clock[SERVERS_MAX];
};

struct server_clocks *server_clocks_open(const struct shared_page *page) {
    struct server_clocks *clocks = calloc(1, sizeof *clocks);
    if (!clocks) abort();
    clocks->page = page;
    return clocks;
}

static void clock_close(const struct server_clock *clock) {
    if (clock->page) munmap(clock->page, sizeof *clock->page);
    if (clock->fd >= 0) close(clock->fd);
}

void server_clocks_close(struct server_clocks *clocks) {
    if (!clocks) return;
    for (int server = 0; server < clocks->count; server++) clock_close(&clocks->clock[server]);
    free(clocks);
}

static int64_t server_clock_gained_ns(const struct server_clocks *clocks, const struct server_clock *clock) {
    return shared_page_drift_ns(shared_page_mono_ns(clocks->page) - clock->since_ns, clock->drift_ppm);
}

static int64_t wall_us_of(const struct server_clocks *clocks, int server) {
    const struct server_clock *clock = &clocks->clock[server];
    return (shared_page_wall_ns(clocks->page) + clock->offset_ns + server_clock_gained_ns(clocks, clock)) /
           CLOCK_NS_PER_US;
}

/* The time at which the clock stands, as libfaketime reads it. */
static size_t time_render(int64_t wall_us, char *text, size_t size) {
    time_t seconds = wall_us / 1000000;
    struct tm calendar;
    gmtime_r(&seconds, &calendar);
    size_t length = strftime(text, size, "%Y-%m-%d %H:%M:%S", &calendar);
    return length + (size_t)snprintf(text + length, size - length, ".%06d5\n", (int)(wall_us % 1000000));
}

static bool clock_write(const struct server_clocks *clocks, int server) {
    const struct server_clock *clock = &clocks->clock[server];
    char text[CLOCK_PAGE_TEXT];
    if (clock->fd < 0) return true;
    if (!shared_page_is_virtual(clocks->page)) {
        clock_page_set_shift(clock->page, clock->offset_ns, clock->drift_ppm, clock->since_ns);
        return true;
    }
    int64_t wall_us = wall_us_of(clocks, server);
    atomic_store_explicit(&clock->page->wall_ns, wall_us * CLOCK_NS_PER_US, memory_order_release);
    size_t length = time_render(wall_us, text, sizeof text);
    return pwrite(clock->fd, text, length, 0) == (ssize_t)length;
}

bool server_clocks_write(const struct server_clocks *clocks) {
    bool written = true;
    for (int server = 0; server < clocks->count; server++) written &= clock_write(clocks, server);
    return written;
}

static bool clock_open(struct server_clock *clock, const char *path) {
    clock->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (clock->fd < 0 || ftruncate(clock->fd, sizeof *clock->page) != 0) return false;
    void *map = mmap(NULL, sizeof *clock->page, PROT_READ | PROT_WRITE, MAP_SHARED, clock->fd, 0);
    if (map == MAP_FAILED) return false;
    clock->page = map;
    return true;
}

int server_clocks_add(struct server_clocks *clocks, const char *path, struct history_error *error) {
    if (clocks->count == SERVERS_MAX) {
        history_fail(error, "more than %d servers in one trial", SERVERS_MAX);
        return -1;
    }
    struct server_clock *clock = &clocks->clock[clocks->count];
    *clock = (struct server_clock){.fd = -1};
    if (path && !(clock_open(clock, path) && clock_write(clocks, clocks->count))) {
        history_fail(error, "%.160s: %s", path, strerror(errno));
        clock_close(clock);
        return -1;
    }
    return clocks->count++;
}

bool server_clocks_has_file(const struct server_clocks *clocks, int server) {
    return clocks->clock[server].fd >= 0;
}

bool scheduler_set_server_clock(struct scheduler *scheduler, int server, int64_t offset_ns, int64_t drift_ppm) {
    struct server_clocks *clocks = scheduler->server_clocks;
    struct server_clock *clock = &clocks->clock[server];
    if (clock->fd < 0) return false;
    clock->offset_ns = offset_ns;
    clock->drift_ppm = drift_ppm;
    clock->since_ns = shared_page_mono_ns(clocks->page);
    return clock_write(clocks, server);
}

bool scheduler_server_clock_error(const struct scheduler *scheduler, int server, int64_t *offset_ns,
                                  int64_t *drift_ppm) {
    const struct server_clock *clock = &scheduler->server_clocks->clock[server];
    *offset_ns = clock->offset_ns + server_clock_gained_ns(scheduler->server_clocks, clock);
    *drift_ppm = clock->drift_ppm;
    return clock->fd >= 0;
}

int64_t scheduler_server_wall_us(const struct scheduler *scheduler, int server) {
    return wall_us_of(scheduler->server_clocks, server);
}
