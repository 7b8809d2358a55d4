#include "harness/supervisor/thread_states.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/supervisor/call_names.h"
#include "harness/supervisor/held_calls.h"

enum { LINE = 512 };

static bool read_line(pid_t tid, const char *name, char line[LINE]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, line, LINE - 1) : -1;
    if (fd >= 0) close(fd);
    if (got <= 0) return false;
    line[got] = '\0';
    return true;
}

static bool is_held(const struct supervisor *supervisor, pid_t tid) {
    for (const struct held_call *each = supervisor->held; each; each = each->next)
        if ((pid_t)each->call.pid == tid) return true;
    return false;
}

bool thread_states_find_blocked(const struct supervisor *supervisor, char call[THREAD_CALL_ROOM]) {
    for (int each = 0; each < supervisor->program.thread_count; each++) {
        const struct program_thread *thread = &supervisor->program.threads[each];
        char line[LINE], name[LINE];
        if (thread->process->in_vfork || is_held(supervisor, thread->tid)) continue;
        if (!read_line(thread->tid, "stat", line) || !strrchr(line, ')')) continue;
        char state = strrchr(line, ')')[2];
        if (state != 'S' && state != 'D') continue;
        if (!read_line(thread->tid, "syscall", line) || !read_line(thread->tid, "comm", name)) continue;
        name[strcspn(name, "\n")] = '\0';
        snprintf(call, THREAD_CALL_ROOM, "%s (number %d), in the thread %.40s", call_name(atoi(line)), atoi(line),
                 name);
        return true;
    }
    return false;
}
