#include "harness/supervisor/thread_states.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/process/proc_file.h"
#include "harness/supervisor/calls.h"

enum { LINE = 512, CHILDREN = 4096 };

static bool thread_is_held(const struct supervisor *supervisor, pid_t tid) {
    for (const struct held_call *each = supervisor->held; each; each = each->next)
        if (each->call.tid == tid) return true;
    return false;
}

/* Whether the thread sleeps, and in what; false also if it has just ended. */
static bool is_asleep(const struct program_thread *thread, struct blocked_thread *blocked) {
    char line[LINE], name[LINE];
    if (!proc_read(line, sizeof line, "/proc/%d/stat", thread->tid) || !strrchr(line, ')')) return false;
    char state = strrchr(line, ')')[2];
    if (state != 'S' && state != 'D') return false;
    if (!proc_read(line, sizeof line, "/proc/%d/syscall", thread->tid) ||
        !proc_read(name, sizeof name, "/proc/%d/comm", thread->tid))
        return false;
    name[strcspn(name, "\n")] = '\0';
    int number = atoi(line);
    snprintf(blocked->call, sizeof blocked->call, "%s (number %d), in the thread %.40s", call_find(number)->name,
             number, name);
    blocked->by_device = state == 'D' || number == SYS_fsync || number == SYS_fdatasync || number == SYS_sync;
    return true;
}

bool thread_states_find_blocked(const struct supervisor *supervisor, struct blocked_thread *blocked) {
    bool found = false;
    for (int each = 0; each < supervisor->program.thread_count; each++) {
        const struct program_thread *thread = &supervisor->program.threads[each];
        if (thread->process->vforks || thread_is_held(supervisor, thread->tid) || !is_asleep(thread, blocked)) continue;
        found = true;
        if (!blocked->by_device) return true;
    }
    return found;
}

static bool is_newborn(struct supervisor *supervisor, pid_t tid) {
    char line[LINE];
    if (program_knows_thread(&supervisor->program, tid) || !proc_read(line, sizeof line, "/proc/%d/stat", tid))
        return false;
    const char *name_end = strrchr(line, ')');
    return name_end && name_end[2] != 'Z' && name_end[2] != 'X';
}

static bool has_newborn_child(struct supervisor *supervisor, pid_t pid, pid_t tid) {
    char children[CHILDREN];
    if (!proc_read(children, sizeof children, "/proc/%d/task/%d/children", pid, tid)) return false;
    for (char *rest = children, *word; (word = strtok_r(rest, " ", &rest));)
        if (is_newborn(supervisor, atoi(word))) return true;
    return false;
}

static bool has_newborn(struct supervisor *supervisor, pid_t pid) {
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *each; tasks && !found && (each = readdir(tasks));) {
        pid_t tid = atoi(each->d_name);
        found = tid > 0 && (is_newborn(supervisor, tid) || has_newborn_child(supervisor, pid, tid));
    }
    if (tasks) closedir(tasks);
    return found;
}

bool thread_states_find_newborn(struct supervisor *supervisor) {
    if (has_newborn_child(supervisor, getpid(), getpid())) return true; /* CLONE_PARENT */
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        pid_t pid = supervisor->program.processes[each].pid;
        if (pid && has_newborn(supervisor, pid)) return true;
    }
    return false;
}
