/* The beginning and the end of threads and processes, signals between them, and turns. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harness/scheduler/hang_limit.h"
#include "harness/supervisor/calls.h"
#include "harness/supervisor/image.h"
#include "harness/supervisor/signals.h"

enum { END_LIMIT_MS = 60000 };

/* --- beginnings --- */

/* A thread or a process is made. */
void on_birth(const struct program_call *call) {
    struct supervisor *supervisor = call->supervisor;
    uint64_t flags = call->number == SYS_clone ? call->arguments[0] : 0;
    if (call->number == SYS_clone3 && !call_read(call, call->arguments[0], &flags, sizeof flags)) return;
#ifdef SYS_vfork
    if (call->number == SYS_vfork) flags = CLONE_VFORK;
#endif
    if (supervisor->birth_count == SUPERVISOR_BIRTHS) {
        supervisor_give_up(supervisor, "the program makes more than %d threads at once", SUPERVISOR_BIRTHS);
        return;
    }
    supervisor->births[supervisor->birth_count++] = ++supervisor->next_order;
    call->process->vforks += (flags & CLONE_VFORK) != 0;
    call->process->unborn_vforks += (flags & CLONE_VFORK) != 0;
    supervisor_pass(call);
}

/* --- ends --- */

/* Which child a thread waits for; 0: any; -1: one whose end was waited for before. */
static pid_t awaited_child(const struct program_call *call) {
    if (call->number == SYS_wait4) return (pid_t)call->arguments[0] > 0 ? (pid_t)call->arguments[0] : 0;
    if (call->arguments[0] == P_PIDFD) return program_pidfd_process(call->process, (int)call->arguments[1]);
    return call->arguments[0] == P_PID ? (pid_t)call->arguments[1] : 0;
}

static void tell_maker(struct supervisor *supervisor, struct program_process *maker, pid_t ended) {
    maker->ended_children++;
    for (struct held_call *each = supervisor->held; each; each = each->next) {
        if (each->call.process != maker || each->kind != HELD_CHILD || each->end != END_NOT_YET) continue;
        pid_t awaited = awaited_child(&each->call);
        if (awaited != 0 && awaited != ended) continue;
        held_call_ready(each, END_PASS, 0);
        maker->ended_children--;
        break;
    }
    signals_interrupt(supervisor, maker, 0, SIGCHLD);
}

void life_process_ended(struct supervisor *supervisor, struct program_process *process) {
    pid_t pid = process->pid;
    held_calls_drop(supervisor, process, 0);
    if (!hang_limit_await_readable(process->pid_fd, hang_limit_deadline_ns(END_LIMIT_MS)))
        supervisor_give_up(supervisor, "process %d does not end", pid);
    struct program_process *maker = program_known_process(&supervisor->program, process->maker);
    program_forget_process(&supervisor->program, process);
    if (maker) tell_maker(supervisor, maker, pid);
    if (pid == supervisor->root && waitpid(pid, &supervisor->status, 0) == pid) supervisor->root_ended = true;
}

void on_exit_thread(const struct program_call *call) {
    struct supervisor *supervisor = call->supervisor;
    call->process->threads--;
    program_forget_thread(&supervisor->program, call->tid);
    supervisor_pass(call);
    if (call->process->threads == 0) life_process_ended(supervisor, call->process);
    else if (supervisor->exit_count < SUPERVISOR_EXITS)
        supervisor->exits[supervisor->exit_count++] = (struct ended_thread){call->process->pid, call->tid};
}

void on_exit_group(const struct program_call *call) {
    supervisor_pass(call);
    life_process_ended(call->supervisor, call->process);
}

void on_await_child(const struct program_call *call) {
    struct program_process *process = call->process;
    uint64_t options = call->arguments[call->number == SYS_wait4 ? 2 : 3];
    pid_t awaited = awaited_child(call);
    bool lives = false;
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        const struct program_process *child = &call->supervisor->program.processes[each];
        lives |= child->pid && child->maker == process->pid && (awaited == 0 || awaited == child->pid);
    }
    bool ended = awaited ? !lives : process->ended_children > 0;
    if (process->ended_children > 0 && ended && awaited >= 0) process->ended_children--;
    if (options & WNOHANG || ended || !lives) supervisor_pass(call);
    else held_call_add(call, HELD_CHILD);
}

/* --- signals --- */

/* Go's os.Process sends signals by descriptors of processes. */
void on_kill(const struct program_call *call) {
    bool by_descriptor = call->number == SYS_pidfd_send_signal;
    int number = (int)call->arguments[1];
    pid_t pid =
        by_descriptor ? program_pidfd_process(call->process, (int)call->arguments[0]) : (pid_t)call->arguments[0];
    struct program_process *target = program_known_process(&call->supervisor->program, pid);
    if (target && target != call->process) target->is_killed |= signals_ends_process(target, number);
    supervisor_pass(call);
    if (target) signals_interrupt(call->supervisor, target, 0, number);
    else call->supervisor->signals++; /* of a group */
}

/* What the kernel refuses interrupts nobody. */
void on_queue(const struct program_call *call) {
    siginfo_t info;
    if (call_read(call, call->arguments[2], &info, sizeof info)) on_kill(call);
}

void on_kill_thread(const struct program_call *call) {
    bool has_group = call->number != SYS_tkill;
    pid_t tid = (pid_t)call->arguments[has_group ? 1 : 0];
    bool is_sent = tid > 0 && tid != call->tid && (!has_group || (pid_t)call->arguments[0] == call->process->pid);
    supervisor_pass(call);
    if (is_sent) signals_interrupt(call->supervisor, call->process, tid, (int)call->arguments[has_group ? 2 : 1]);
}

void on_await_signal(const struct program_call *call) {
    int64_t limit_ns = INT64_MAX;
    bool timed = call->number == SYS_rt_sigtimedwait;
    if (timed && !call_read_limit(call, 2, &limit_ns)) return;
    if (limit_ns == 0) {
        supervisor_pass(call);
        return;
    }
    struct held_call *held = held_call_add(call, HELD_SIGNAL);
    held->deadline_ns = call_deadline_ns(call, limit_ns);
    if (program_pending_signals(call->tid)) held_call_ready(held, END_PASS, 0);
}
