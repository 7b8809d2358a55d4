/* Which tasks get no turn because a fault has stopped their process, or has stalled the task alone. */

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "harness/scheduler/hang_limit.h"
#include "harness/scheduler/scheduler_state.h"
#include "harness/scheduler/wakeup.h"

enum { RECORD_LIMIT_MS = 20000 };
static const struct timespec RECORD_PAUSE = {.tv_nsec = 100000};

static void slot_mark(struct task_slot *slot, enum task_stop why, bool stopped) {
    if (stopped) atomic_fetch_or(&slot->stopped, (uint32_t)why);
    else atomic_fetch_and(&slot->stopped, ~(uint32_t)why);
}

/* The entry of this process, else a free one, else the last. */
static int entry_of(const struct scheduler *scheduler, int pid) {
    int each = 0;
    while (each < STOPPED_PROCESSES_MAX - 1 && scheduler->stopped[each].pid != pid) each++;
    if (scheduler->stopped[each].pid == pid) return each;
    for (each = 0; each < STOPPED_PROCESSES_MAX - 1 && scheduler->stopped[each].pid != 0; each++) continue;
    return each;
}

int scheduler_set_process_stopped(struct scheduler *scheduler, int pid, bool stopped) {
    int entry = entry_of(scheduler, pid);
    int left = reasons_count(&scheduler->stopped[entry].reasons, stopped);
    scheduler->stopped[entry].pid = left > 0 ? pid : 0;
    for (int task = 0; task < scheduler->tasks; task++)
        if (scheduler->page->tasks[task].pid == pid)
            slot_mark(&scheduler->page->tasks[task], TASK_STOP_PROCESS, left > 0);
    return left;
}

int scheduler_set_task_stopped(struct scheduler *scheduler, int task, bool stalled) {
    struct task_slot *slot = &scheduler->page->tasks[task];
    int left = reasons_count(&scheduler->driven[task].stalled, stalled);
    slot_mark(slot, TASK_STOP_STALL, left > 0);
    if (left == 0) syscall(SYS_futex, &slot->stopped, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (scheduler->driven[task].is_group) wakeup_send(scheduler->driven[task].turn_fd);
    return left;
}

/* Sends SIGSTOP and waits until every thread of the child has stopped. */
static bool stop_child(int pid) {
    siginfo_t info = {0};
    if (pid <= 0 || kill(pid, SIGSTOP) < 0) return false; /* 0 would be our own group */
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) < 0)
        if (errno != EINTR) return false;
    return info.si_code == CLD_STOPPED;
}

static bool any_appends(const struct scheduler *scheduler, int pid) {
    for (int task = 0; task < scheduler->tasks; task++) {
        const struct task_slot *slot = &scheduler->page->tasks[task];
        if (slot->pid == pid && atomic_load(&slot->appends) != 0) return true;
    }
    return false;
}

bool scheduler_stop_between_records(struct scheduler *scheduler, int task) {
    int64_t until_ns = hang_limit_deadline_ns(RECORD_LIMIT_MS);
    int pid = scheduler->page->tasks[task].pid;
    for (;;) {
        if (!stop_child(pid)) return false;
        if (!any_appends(scheduler, pid)) return true;
        kill(pid, SIGCONT);
        if (hang_limit_is_over(until_ns)) return false;
        nanosleep(&RECORD_PAUSE, NULL);
    }
}
