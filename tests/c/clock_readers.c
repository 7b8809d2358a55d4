/* clock_readers CHANGES: threads read the time of day by clock_gettime, gettimeofday and time while the page of their
 * clock is written CHANGES times. It runs with liblockstorm-preload.so, and CLOCK_PAGE_VARIABLE names the page. The
 * clock changes between two shifts, and every mixture of their numbers is more than ten minutes away from both.
 *
 * Prints one JSON line: the number of readings that showed the first shift, the second one, and neither. Exit status: 0
 * every reading showed one of them, 1 one did not, 2 it could not be tried. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "harness/process/preload/clock_page.h"

enum { NS_PER_S = 1000000000, READERS = 3, IN_A_ROW = 7, TOGETHER = 32, SLACK_NS = 1000000, DRIFT_PPM = 500000 };

static const int64_t AHEAD_NS = INT64_C(1000) * NS_PER_S, DRIFTED_NS = INT64_C(8000) * NS_PER_S;

static struct clock_page *page;
static int64_t begin_mono_ns;
static _Atomic bool is_over;

struct reader {
    pthread_t thread;
    int function;
    int64_t first, second, neither;
};

static int64_t machine_ns(clockid_t clock) {
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* *step_ns: the resolution of the function. */
static int64_t shown_ns(int function, int64_t *step_ns) {
    struct timespec precise;
    struct timeval now;
    switch (function) {
    case 0:
        *step_ns = 1;
        clock_gettime(CLOCK_REALTIME, &precise);
        return (int64_t)precise.tv_sec * NS_PER_S + precise.tv_nsec;
    case 1:
        *step_ns = 1000;
        gettimeofday(&now, NULL);
        return (int64_t)now.tv_sec * NS_PER_S + now.tv_usec * INT64_C(1000);
    default: *step_ns = NS_PER_S; return (int64_t)time(NULL) * NS_PER_S;
    }
}

/* By how much the second shift is wrong at this stamp of the machine's monotonic clock. */
static int64_t second_error_ns(int64_t mono_ns) {
    int64_t lasted_ns = mono_ns - (begin_mono_ns - DRIFTED_NS);
    return lasted_ns / 2 - AHEAD_NS;
}

/* Reads the clock many times between two looks at the machine's, which take longer. */
static void *read_clock(void *argument) {
    struct reader *reader = argument;
    int64_t shown[TOGETHER], step_ns = 1;
    while (!atomic_load(&is_over)) {
        int64_t before_mono_ns = machine_ns(CLOCK_MONOTONIC), before_ns = machine_ns(CLOCK_REALTIME);
        for (int each = 0; each < TOGETHER; each++) shown[each] = shown_ns(reader->function, &step_ns);
        int64_t after_ns = machine_ns(CLOCK_REALTIME), after_mono_ns = machine_ns(CLOCK_MONOTONIC);
        int64_t low_ns = before_ns - step_ns - SLACK_NS, high_ns = after_ns + SLACK_NS;
        int64_t second_low_ns = low_ns + second_error_ns(before_mono_ns);
        int64_t second_high_ns = high_ns + second_error_ns(after_mono_ns);
        for (int each = 0; each < TOGETHER; each++) {
            if (shown[each] >= low_ns + AHEAD_NS && shown[each] <= high_ns + AHEAD_NS) reader->first++;
            else if (shown[each] >= second_low_ns && shown[each] <= second_high_ns) reader->second++;
            else reader->neither++;
        }
    }
    return NULL;
}

static bool page_map(void) {
    const char *path = getenv(CLOCK_PAGE_VARIABLE);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0 || ftruncate(fd, sizeof *page) != 0) return perror(CLOCK_PAGE_VARIABLE), false;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return page != MAP_FAILED;
}

/* Each shift is written twice, so that both places in the page change. A reader needs a moment in which they do not;
 * some changes come in a row, so that it meets several. */
static void clock_change(int64_t changes) {
    for (int64_t change = 0; change < changes; change++) {
        if (change / 2 % 2 == 0) clock_page_set_shift(page, AHEAD_NS, 0, 0);
        else clock_page_set_shift(page, -AHEAD_NS, DRIFT_PPM, begin_mono_ns - DRIFTED_NS);
        if (change % IN_A_ROW == 0) machine_ns(CLOCK_MONOTONIC);
    }
}

int main(int count, char **words) {
    struct reader readers[READERS] = {0};
    int64_t first = 0, second = 0, neither = 0;
    if (count != 2) return fprintf(stderr, "usage: clock_readers CHANGES\n"), 2;
    if (!page_map()) return 2;
    begin_mono_ns = machine_ns(CLOCK_MONOTONIC);
    clock_page_set_shift(page, AHEAD_NS, 0, 0);
    for (int each = 0; each < READERS; each++) {
        readers[each].function = each % 3;
        if (pthread_create(&readers[each].thread, NULL, read_clock, &readers[each]) != 0) return 2;
    }
    clock_change(strtoll(words[1], NULL, 10));
    atomic_store(&is_over, true);
    for (int each = 0; each < READERS; each++) {
        pthread_join(readers[each].thread, NULL);
        first += readers[each].first;
        second += readers[each].second;
        neither += readers[each].neither;
    }
    printf("{\"first\": %" PRId64 ", \"second\": %" PRId64 ", \"neither\": %" PRId64 "}\n", first, second, neither);
    return neither > 0;
}
