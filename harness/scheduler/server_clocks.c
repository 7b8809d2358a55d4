/* The wall clocks of a trial's servers. Each is a file (preload/clock_page.h) that the server reads instead of the
 * machine's clock.
 *
 * In virtual time the file holds the time itself: as a number, which redis-server and ZooKeeper have mapped, and as a
 * line that libfaketime reads at every call of PostgreSQL's, with half a microsecond on top, because the fraction
 * passes through a double on its way and must not fall below the intended microsecond. In real time it holds how the
 * clock differs from the machine's, which a redis-server reads as this side does: there is nothing to measure.
 *
 * Servers are numbered from 0 in the order in which they are added. */
#include "harness/scheduler/scheduler_state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/process/preload/clock_page.h"
#include "harness/scheduler/clock.h"

static void clock_close(const struct server_clock *clock) {
    if (clock->page) munmap(clock->page, sizeof *clock->page);
    if (clock->fd >= 0) close(clock->fd);
}

void server_clocks_close(struct scheduler *scheduler) {
    for (int server = 0; server < scheduler->servers; server++) clock_close(&scheduler->server_clocks[server]);
}

static int64_t server_clock_gained_ns(const struct scheduler *scheduler, const struct server_clock *clock) {
    return shared_page_drift_ns(shared_page_mono_ns(scheduler->page) - clock->since_ns, clock->drift_ppm);
}

int64_t scheduler_server_wall_us(const struct scheduler *scheduler, int server) {
    const struct server_clock *clock = &scheduler->server_clocks[server];
    return (shared_page_wall_ns(scheduler->page) + clock->offset_ns + server_clock_gained_ns(scheduler, clock)) /
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

static bool clock_write(const struct scheduler *scheduler, int server) {
    const struct server_clock *clock = &scheduler->server_clocks[server];
    char text[CLOCK_PAGE_TEXT];
    if (clock->fd < 0) return true;
    if (!shared_page_is_virtual(scheduler->page)) {
        clock_page_set_shift(clock->page, clock->offset_ns, clock->drift_ppm, clock->since_ns);
        return true;
    }
    int64_t wall_us = scheduler_server_wall_us(scheduler, server);
    atomic_store_explicit(&clock->page->wall_ns, wall_us * CLOCK_NS_PER_US, memory_order_release);
    size_t length = time_render(wall_us, text, sizeof text);
    return pwrite(clock->fd, text, length, 0) == (ssize_t)length;
}

bool server_clocks_write(const struct scheduler *scheduler) {
    bool written = true;
    for (int server = 0; server < scheduler->servers; server++) written &= clock_write(scheduler, server);
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

bool server_clocks_add(struct scheduler *scheduler, const char *path, struct history_error *error) {
    int server = scheduler->servers;
    if (server == SERVERS_MAX) return history_fail(error, "more than %d servers in one trial", SERVERS_MAX);
    struct server_clock *clock = &scheduler->server_clocks[server];
    *clock = (struct server_clock){.fd = -1};
    if (!path || (clock_open(clock, path) && clock_write(scheduler, server))) return true;
    history_fail(error, "%.160s: %s", path, strerror(errno));
    clock_close(clock);
    return false;
}

bool scheduler_set_server_clock(struct scheduler *scheduler, int server, int64_t offset_ns, int64_t drift_ppm) {
    struct server_clock *clock = &scheduler->server_clocks[server];
    if (clock->fd < 0) return false;
    clock->offset_ns = offset_ns;
    clock->drift_ppm = drift_ppm;
    clock->since_ns = shared_page_mono_ns(scheduler->page);
    return clock_write(scheduler, server);
}

bool scheduler_server_clock_error(const struct scheduler *scheduler, int server, int64_t *offset_ns,
                                  int64_t *drift_ppm) {
    const struct server_clock *clock = &scheduler->server_clocks[server];
    *offset_ns = clock->offset_ns + server_clock_gained_ns(scheduler, clock);
    *drift_ppm = clock->drift_ppm;
    return clock->fd >= 0;
}

/* --- timers of servers' processes --- */

/* When it is due, by the trial's clock; 0: it is not set. What the process has asked for counts from now on: the clock
 * has not moved since. */
static int64_t alarm_due_ns(const struct scheduler *scheduler, struct clock_alarm *alarm) {
    int64_t after_ns = atomic_exchange(&alarm->after_ns, 0);
    if (after_ns != 0)
        alarm->due_ns = after_ns == CLOCK_ALARM_OFF ? 0 : shared_page_mono_ns(scheduler->page) + after_ns;
    return alarm->due_ns;
}

int64_t server_clocks_next_alarm_ns(const struct scheduler *scheduler) {
    int64_t next_ns = INT64_MAX;
    for (int server = 0; server < scheduler->servers; server++) {
        struct clock_page *page = scheduler->server_clocks[server].page;
        for (int each = 0; page && each < CLOCK_PAGE_ALARMS && atomic_load(&page->alarms[each].pid); each++) {
            int64_t due_ns = alarm_due_ns(scheduler, &page->alarms[each]);
            if (due_ns && due_ns < next_ns) next_ns = due_ns;
        }
    }
    return next_ns;
}

int server_clocks_ring(const struct scheduler *scheduler) {
    int rung = 0;
    int64_t now_ns = shared_page_mono_ns(scheduler->page);
    for (int server = 0; server < scheduler->servers; server++) {
        struct clock_page *page = scheduler->server_clocks[server].page;
        for (int each = 0; page && each < CLOCK_PAGE_ALARMS && atomic_load(&page->alarms[each].pid); each++) {
            struct clock_alarm *alarm = &page->alarms[each];
            if (!alarm->due_ns || alarm->due_ns > now_ns) continue;
            alarm->due_ns = 0;
            rung += kill(atomic_load(&alarm->pid), SIGALRM) == 0;
        }
    }
    return rung;
}

void server_clocks_forget_alarms(const struct scheduler *scheduler, int server) {
    struct clock_page *page = scheduler->server_clocks[server].page;
    if (page) memset(page->alarms, 0, sizeof page->alarms);
}
