#include "harness/rest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/clock.h"

enum { SLEEPERS = 256, STATUS_ROOM = 4096, LOOK_PAUSE_NS = 20000, ROUND_PAUSE_NS = 200000 };

/* Who was seen, and how often each had gone to sleep by then. */
struct look {
    int count;
    struct {
        int id;
        uint64_t switches;
    } seen[SLEEPERS];
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

/* False when it runs, or is about to, or has just ended. Of a process its first thread, of a thread itself. */
static bool look_at(int id, struct look *look) {
    char path[64], text[STATUS_ROOM];
    snprintf(path, sizeof path, "/proc/%d/status", id);
    if (look->count == SLEEPERS || !file_read(path, text, sizeof text) || !strstr(text, "\nState:\tS")) return false;
    look->seen[look->count].id = id;
    look->seen[look->count++].switches =
        field_number(text, "\nvoluntary_ctxt_switches:") + field_number(text, "\nnonvoluntary_ctxt_switches:");
    return true;
}

static bool look_at_family(int pid, struct look *look) {
    char path[64], children[STATUS_ROOM];
    if (!look_at(pid, look)) return false;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    if (!file_read(path, children, sizeof children)) return false;
    for (char *rest = children, *word; (word = strtok_r(rest, " ", &rest));)
        if (!look_at(atoi(word), look)) return false;
    return true;
}

static bool look_at_threads(int pid, struct look *look) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    bool asleep = threads != NULL;
    for (struct dirent *thread; asleep && (thread = readdir(threads));)
        if (thread->d_name[0] != '.') asleep = look_at(atoi(thread->d_name), look);
    if (threads) closedir(threads);
    return asleep && look->count > 0;
}

static bool await_rest(int pid, int64_t limit_ms, bool (*look_around)(int, struct look *)) {
    int64_t until_ns = clock_real_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    do {
        struct look before = {0}, after = {0};
        if (look_around(pid, &before) && look_around(pid, &after) && memcmp(&before, &after, sizeof before) == 0)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_PAUSE_NS}, NULL); /* it may need this core to come to rest */
    } while (clock_real_mono_ns() < until_ns);
    return false;
}

bool processes_await_rest(int pid, int64_t limit_ms) {
    return await_rest(pid, limit_ms, look_at_family);
}

bool threads_await_rest(int pid, int64_t limit_ms) {
    return await_rest(pid, limit_ms, look_at_threads);
}

static bool sleeps_read(int thread, uint64_t *sleeps) {
    char path[64], text[STATUS_ROOM];
    snprintf(path, sizeof path, "/proc/%d/status", thread);
    if (!file_read(path, text, sizeof text)) return false;
    *sleeps = field_number(text, "\nvoluntary_ctxt_switches:");
    return true;
}

/* It may have looked just before we came, and then be held up by a mutex once: that is one sleep, the end of that round
 * another, and the end of the next one the third. */
bool thread_await_round(int thread, int64_t limit_ms) {
    enum { ENOUGH = 3 };
    int64_t until_ns = clock_real_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    uint64_t before, now;
    if (!sleeps_read(thread, &before)) return false;
    while (sleeps_read(thread, &now)) {
        if (now >= before + ENOUGH) return true;
        if (clock_real_mono_ns() >= until_ns) return false;
        nanosleep(&(struct timespec){.tv_nsec = ROUND_PAUSE_NS}, NULL);
    }
    return false;
}
