#include "harness/scheduler/task_stops.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/scheduler/hang_limit.h"
#include "harness/scheduler/reasons.h"

enum { RECORD_LIMIT_MS = 20000 };
static const struct timespec RECORD_PAUSE = {.tv_nsec = 100000};

static void slot_mark(struct task_slot *slot, enum task_stop why, bool stopped) {
    if (stopped) atomic_fetch_or(&slot->stopped, (uint32_t)why);
    else atomic_fetch_and(&slot->stopped, ~(uint32_t)why);
}

/* The entry of this process, else a free one, else the last. */
static int entry_of(const struct task_stops *stops, int pid) {
    int each = 0;
    while (each < STOPPED_PROCESSES_MAX - 1 && stops->process[each].pid != pid) each++;
    if (stops->process[each].pid == pid) return each;
    for (each = 0; each < STOPPED_PROCESSES_MAX - 1 && stops->process[each].pid != 0; each++) continue;
    return each;
}

int task_stops_set_process(struct task_stops *stops, int tasks, int pid, bool stopped) {
    int entry = entry_of(stops, pid);
    int left = reasons_count(&stops->process[entry].reasons, stopped);
    stops->process[entry].pid = left > 0 ? pid : 0;
    for (int task = 0; task < tasks; task++)
        if (stops->page->tasks[task].pid == pid) slot_mark(&stops->page->tasks[task], TASK_STOP_PROCESS, left > 0);
    return left;
}

void task_stops_forget_process(struct task_stops *stops, int pid) {
    for (int each = 0; each < STOPPED_PROCESSES_MAX; each++)
        if (stops->process[each].pid == pid) stops->process[each].pid = stops->process[each].reasons = 0;
}

int task_stops_set_task(struct task_stops *stops, int task, bool stalled) {
    struct task_slot *slot = &stops->page->tasks[task];
    int left = reasons_count(&stops->stalled[task], stalled);
    slot_mark(slot, TASK_STOP_STALL, left > 0);
    if (left == 0) syscall(SYS_futex, &slot->stopped, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return left;
}

void task_stops_forget_task(struct task_stops *stops, int task) {
    stops->stalled[task] = 0;
    atomic_store(&stops->page->tasks[task].stopped, 0);
}

/* Sends SIGSTOP and waits until every thread of the child has stopped. */
static bool stop_child(int pid) {
    siginfo_t info = {0};
    if (pid <= 0 || kill(pid, SIGSTOP) < 0) return false; /* 0 would be our own group */
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) < 0)
        if (errno != EINTR) return false;
    return info.si_code == CLD_STOPPED;
}

static bool any_appends(const struct task_stops *stops, int tasks, int pid) {
    for (int task = 0; task < tasks; task++) {
        const struct task_slot *slot = &stops->page->tasks[task];
        if (slot->pid == pid && atomic_load(&slot->appends) != 0) return true;
    }
    return false;
}

bool task_stops_between_records(const struct task_stops *stops, int tasks, int task) {
    int64_t until_ns = hang_limit_deadline_ns(RECORD_LIMIT_MS);
    int pid = stops->page->tasks[task].pid;
    for (;;) {
        if (!stop_child(pid)) return false;
        if (!any_appends(stops, tasks, pid)) return true;
        kill(pid, SIGCONT);
        if (hang_limit_is_over(until_ns)) return false;
        nanosleep(&RECORD_PAUSE, NULL);
    }
}
