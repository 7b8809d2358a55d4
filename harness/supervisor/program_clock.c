#include "harness/supervisor/program_clock.h"

#include "harness/scheduler/clock.h"

static void host_clocks_read(const struct program_clock *clock, int64_t *mono_ns, int64_t *wall_ns) {
    *mono_ns = shared_page_host_mono_ns(clock->page, clock->host) + SHARED_PAGE_UPTIME_NS + clock->crept_ns;
    *wall_ns = shared_page_host_wall_ns(clock->page, clock->host) + clock->crept_ns;
}

void program_clock_begin(struct program_clock *clock, const struct shared_page *page, const struct task_slot *host) {
    *clock =
        (struct program_clock){.page = page, .host = host, .mono_ns = SHARED_PAGE_UPTIME_NS, .wall_ns = CLOCK_EPOCH_NS};
    program_clock_update(clock);
}

bool program_clock_update(struct program_clock *clock) {
    int64_t mono_ns = clock->mono_ns, wall_ns = clock->wall_ns;
    if (!clock->page) return false;
    host_clocks_read(clock, &clock->mono_ns, &clock->wall_ns);
    if (clock->mono_ns == mono_ns && clock->wall_ns == wall_ns) return false;
    clock->equal_reads = 0;
    return true;
}

void program_clock_creep(struct program_clock *clock, int64_t step_ns) {
    clock->equal_reads = 0;
    clock->crept_ns += step_ns;
    clock->mono_ns += step_ns;
    clock->wall_ns += step_ns;
}

bool program_clock_count_read(struct program_clock *clock) {
    if (++clock->equal_reads <= PROGRAM_CLOCK_EQUAL_READS) return false;
    program_clock_creep(clock, CLOCK_NS_PER_US);
    return true;
}

void program_clock_move(struct program_clock *clock, int64_t mono_ns) {
    if (clock->page || mono_ns <= clock->mono_ns) return;
    clock->wall_ns += mono_ns - clock->mono_ns;
    clock->mono_ns = mono_ns;
    clock->equal_reads = 0;
}

bool program_clock_is_wall(clockid_t id) {
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_REALTIME_ALARM || id == CLOCK_TAI;
}

/* The processor time of a process is among them: what a program decides by it would not be the same again. */
bool program_clock_is_virtual(clockid_t id) {
    enum { NO_CLOCK = 10 };
    return id <= CLOCK_TAI && id != NO_CLOCK; /* below 0: the processor time of one process or thread */
}

int64_t program_clock_read(const struct program_clock *clock, clockid_t id) {
    return program_clock_is_wall(id) ? clock->wall_ns : clock->mono_ns;
}

int64_t program_clock_late_ns(int64_t began_ns, int64_t deadline_ns) {
    return deadline_ns > began_ns && deadline_ns < INT64_MAX - PROGRAM_CLOCK_LATE_NS ? PROGRAM_CLOCK_LATE_NS : 0;
}

int64_t program_clock_trial_ns(const struct program_clock *clock, int64_t mono_ns) {
    if (mono_ns == INT64_MAX) return INT64_MAX;
    return shared_page_trial_ns(clock->host, mono_ns - SHARED_PAGE_UPTIME_NS - clock->crept_ns);
}
