#include "harness/rest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/clock.h"

enum { PROCESSES = 256, STATUS_ROOM = 4096, LOOK_PAUSE_NS = 20000 };

/* Who was seen, and how often each had gone to sleep by then. */
struct look {
    int count;
    struct {
        int pid;
        uint64_t switches;
    } seen[PROCESSES];
};

static bool file_read(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got >= 0;
}

static uint64_t field_number(const char *text, const char *field) {
    const char *at = strstr(text, field);
    return at ? strtoull(at + strlen(field), NULL, 10) : 0;
}

/* False when it runs, or is about to, or has just ended. */
static bool look_at(int pid, struct look *look) {
    char path[64], text[STATUS_ROOM];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (look->count == PROCESSES || !file_read(path, text, sizeof text) || !strstr(text, "\nState:\tS")) return false;
    look->seen[look->count].pid = pid;
    look->seen[look->count++].switches =
        field_number(text, "\nvoluntary_ctxt_switches:") + field_number(text, "\nnonvoluntary_ctxt_switches:");
    return true;
}

static bool look_around(int pid, struct look *look) {
    char path[64], children[STATUS_ROOM];
    if (!look_at(pid, look)) return false;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    if (!file_read(path, children, sizeof children)) return false;
    for (char *rest = children, *word; (word = strtok_r(rest, " ", &rest));)
        if (!look_at(atoi(word), look)) return false;
    return true;
}

static bool look_at_all(const int *pids, int count, struct look *look) {
    memset(look, 0, sizeof *look);
    for (int each = 0; each < count; each++)
        if (!look_around(pids[each], look)) return false;
    return true;
}

bool families_await_rest(const int *pids, int count, int64_t limit_ms) {
    int64_t until_ns = clock_real_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    struct look before, after;
    do {
        if (look_at_all(pids, count, &before) && look_at_all(pids, count, &after) &&
            memcmp(&before, &after, sizeof before) == 0)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_PAUSE_NS}, NULL); /* it may need this core to come to rest */
    } while (clock_real_mono_ns() < until_ns);
    return false;
}

bool processes_await_rest(int pid, int64_t limit_ms) {
    return families_await_rest(&pid, 1, limit_ms);
}
