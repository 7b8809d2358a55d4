#include "harness/supervisor/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"

/* The kernel's own numbers for "restart the call if the handler allows it, otherwise EINTR", and for "restart it". */
enum { RESTART = 512, RESTART_ALWAYS = 513 };

static bool has_bit(uint64_t set, int number) {
    return set >> (number - 1) & 1;
}

static void interrupt_call(struct held_call *held, int number) {
    pid_t tid = held->call.tid;
    if (held->kind == HELD_SIGNAL) {
        held_call_ready(held, END_PASS, 0);
        return;
    }
    if (!has_bit(program_status(tid, "SigCgt:", 16), number) || has_bit(program_status(tid, "SigBlk:", 16), number))
        return;
    bool timed = held->deadline_ns != INT64_MAX;
    bool restarts = held->kind == HELD_FUTEX || held->kind == HELD_TRANSFER || held->kind == HELD_CHILD;
    held_call_write_left(held);
    int error = restarts && !timed ? RESTART : EINTR;
    held_call_ready(held, END_REFUSE, held->kind == HELD_MUTEX ? RESTART_ALWAYS : error);
}

bool signals_ends_process(const struct program_process *process, int number) {
    if (number == SIGKILL) return true;
    if (number <= 0 || number > SIGRTMAX || number == SIGCHLD || number == SIGURG || number == SIGWINCH ||
        number == SIGCONT || number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU)
        return false;
    static const char *const NAMES[] = {"SigCgt:", "SigIgn:", "SigBlk:"};
    for (size_t each = 0; each < sizeof NAMES / sizeof NAMES[0]; each++)
        if (has_bit(program_status(process->pid, NAMES[each], 16), number)) return false;
    return true;
}

/* For a process the kernel chooses a thread that does not block the signal, its first one if it can. */
void signals_interrupt(struct supervisor *supervisor, struct program_process *process, pid_t tid, int number) {
    supervisor->signals++;
    if (number <= 0 || number > SIGRTMAX) return;
    struct held_call *held = held_call_of(supervisor, tid ? tid : process->pid);
    if (held && held->call.process == process) interrupt_call(held, number);
}

void signals_send(struct supervisor *supervisor, struct program_process *process, pid_t tid, int number,
                  uint64_t value) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = number;
    info.si_code = SI_TIMER;
    info.si_value.sival_ptr = (void *)(uintptr_t)value;
    if (tid) syscall(SYS_rt_tgsigqueueinfo, process->pid, tid, number, &info);
    else syscall(SYS_rt_sigqueueinfo, process->pid, number, &info);
    signals_interrupt(supervisor, process, tid, number);
}
