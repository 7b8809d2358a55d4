/* The beginning and the end of threads and processes, signals between them, and turns. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harness/scheduler/hang_limit.h"
#include "harness/supervisor/calls_life.h"
#include "harness/supervisor/image.h"
#include "harness/supervisor/signals.h"

enum { END_LIMIT_MS = 60000 };

/* --- beginnings --- */

static void begin_one(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call,
                      uint64_t flags) {
    if (supervisor->birth_count == SUPERVISOR_BIRTHS) {
        supervisor_give_up(supervisor, "the program makes more than %d threads at once", SUPERVISOR_BIRTHS);
        return;
    }
    supervisor->births[supervisor->birth_count++] = ++supervisor->next_order;
    process->vforks += (flags & CLONE_VFORK) != 0;
    process->unborn_vforks += (flags & CLONE_VFORK) != 0;
    supervisor_pass(supervisor, call);
}

static void on_clone(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    begin_one(supervisor, process, call, call_argument(call, 0));
}

static void on_clone3(struct supervisor *supervisor, struct program_process *process,
                      const struct seccomp_notif *call) {
    uint64_t flags;
    if (call_read(supervisor, process, call, call_argument(call, 0), &flags, sizeof flags))
        begin_one(supervisor, process, call, flags);
}

#ifdef SYS_fork
static void on_fork(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    begin_one(supervisor, process, call, call->data.nr == SYS_vfork ? CLONE_VFORK : 0);
}
#endif

/* Some of these are the first call of every new thread: the C library's, Go's. */
static void on_first_call(struct supervisor *supervisor, struct program_process *process,
                          const struct seccomp_notif *call) {
    (void)process;
    supervisor_pass(supervisor, call);
}

/* --- ends --- */

/* Which child a thread waits for; 0: any; -1: one whose end was waited for before. */
static pid_t awaited_child(const struct program_process *process, const struct seccomp_notif *call) {
    if (call->data.nr == SYS_wait4) return (pid_t)call_argument(call, 0) > 0 ? (pid_t)call_argument(call, 0) : 0;
    if (call_argument(call, 0) == P_PIDFD) return program_pidfd_process(process, (int)call_argument(call, 1));
    return call_argument(call, 0) == P_PID ? (pid_t)call_argument(call, 1) : 0;
}

static void tell_maker(struct supervisor *supervisor, struct program_process *maker, pid_t ended) {
    maker->ended_children++;
    for (struct held_call *each = supervisor->held; each; each = each->next) {
        pid_t awaited = each->process == maker && each->kind == HELD_CHILD ? awaited_child(maker, &each->call) : -1;
        if (each->end != END_NOT_YET || (awaited != 0 && awaited != ended)) continue;
        held_call_ready(supervisor, each, END_PASS, 0);
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

static void on_exit_thread(struct supervisor *supervisor, struct program_process *process,
                           const struct seccomp_notif *call) {
    process->threads--;
    program_forget_thread(&supervisor->program, (pid_t)call->pid);
    supervisor_pass(supervisor, call);
    if (process->threads == 0) {
        life_process_ended(supervisor, process);
        return;
    }
    if (supervisor->exit_count < SUPERVISOR_EXITS)
        supervisor->exits[supervisor->exit_count++] = (struct ended_thread){process->pid, (pid_t)call->pid};
}

static void on_exit_group(struct supervisor *supervisor, struct program_process *process,
                          const struct seccomp_notif *call) {
    supervisor_pass(supervisor, call);
    life_process_ended(supervisor, process);
}

static void await_child(struct supervisor *supervisor, struct program_process *process,
                        const struct seccomp_notif *call, uint64_t options) {
    pid_t awaited = awaited_child(process, call);
    bool lives = false;
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        const struct program_process *child = &supervisor->program.processes[each];
        lives |= child->pid && child->maker == process->pid && (awaited == 0 || awaited == child->pid);
    }
    bool ended = awaited ? !lives : process->ended_children > 0;
    if (process->ended_children > 0 && ended && awaited >= 0) process->ended_children--;
    if (options & WNOHANG || ended || !lives) supervisor_pass(supervisor, call);
    else held_call_add(supervisor, process, call, HELD_CHILD);
}

static void on_wait4(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    await_child(supervisor, process, call, call_argument(call, 2));
}

static void on_waitid(struct supervisor *supervisor, struct program_process *process,
                      const struct seccomp_notif *call) {
    await_child(supervisor, process, call, call_argument(call, 3));
}

/* --- signals --- */

static void kill_process(struct supervisor *supervisor, struct program_process *process,
                         const struct seccomp_notif *call, pid_t pid) {
    struct program_process *target = program_known_process(&supervisor->program, pid);
    int number = (int)call_argument(call, 1);
    if (target && target != process) target->is_killed |= signals_ends_process(target, number);
    supervisor_pass(supervisor, call);
    if (target) signals_interrupt(supervisor, target, 0, number);
    else supervisor->signals++; /* of a group */
}

static void on_kill(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    kill_process(supervisor, process, call, (pid_t)call_argument(call, 0));
}

/* Go's os.Process sends signals so. */
static void on_pidfd_send(struct supervisor *supervisor, struct program_process *process,
                          const struct seccomp_notif *call) {
    kill_process(supervisor, process, call, program_pidfd_process(process, (int)call_argument(call, 0)));
}

/* What the kernel refuses interrupts nobody. */
static void on_queue(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    siginfo_t info;
    if (call_read(supervisor, process, call, call_argument(call, 2), &info, sizeof info))
        on_kill(supervisor, process, call);
}

static void on_kill_thread(struct supervisor *supervisor, struct program_process *process,
                           const struct seccomp_notif *call) {
    bool has_group = call->data.nr != SYS_tkill;
    pid_t tid = (pid_t)call_argument(call, has_group ? 1 : 0);
    bool is_sent = tid > 0 && tid != (pid_t)call->pid && (!has_group || (pid_t)call_argument(call, 0) == process->pid);
    supervisor_pass(supervisor, call);
    if (is_sent) signals_interrupt(supervisor, process, tid, (int)call_argument(call, has_group ? 2 : 1));
}

static void on_await_signal(struct supervisor *supervisor, struct program_process *process,
                            const struct seccomp_notif *call) {
    int64_t limit_ns = INT64_MAX;
    bool timed = call->data.nr == SYS_rt_sigtimedwait;
    if (timed && !call_read_limit(supervisor, process, call, 2, &limit_ns)) return;
    if (limit_ns == 0) {
        supervisor_pass(supervisor, call);
        return;
    }
    uint64_t pending =
        program_status((pid_t)call->pid, "SigPnd:", 16) | program_status((pid_t)call->pid, "ShdPnd:", 16);
    struct held_call *held = held_call_add(supervisor, process, call, HELD_SIGNAL);
    held->deadline_ns = call_deadline_ns(supervisor, limit_ns);
    if (pending) held_call_ready(supervisor, held, END_PASS, 0);
}

/* --- turns --- */

static void on_yield(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    held_call_add_look(supervisor, process, call);
}

const struct supervised_call CALLS_LIFE[] = {
    {SYS_clone, on_clone, CALL_ALWAYS, 0},
    {SYS_clone3, on_clone3, CALL_ALWAYS, 0},
#ifdef SYS_fork
    {SYS_fork, on_fork, CALL_ALWAYS, 0},
    {SYS_vfork, on_fork, CALL_ALWAYS, 0},
    {SYS_pause, on_await_signal, CALL_ALWAYS, 0},
#endif
    {SYS_execve, image_exec, CALL_ALWAYS, 0},
    {SYS_execveat, image_exec, CALL_ALWAYS, 0},
    {SYS_rseq, on_first_call, CALL_ALWAYS, 0},
    {SYS_set_robust_list, on_first_call, CALL_ALWAYS, 0},
    {SYS_sigaltstack, on_first_call, CALL_ALWAYS, 0},
    {SYS_exit, on_exit_thread, CALL_ALWAYS, 0},
    {SYS_exit_group, on_exit_group, CALL_ALWAYS, 0},
    {SYS_wait4, on_wait4, CALL_ALWAYS, 0},
    {SYS_waitid, on_waitid, CALL_ALWAYS, 0},
    {SYS_kill, on_kill, CALL_ALWAYS, 0},
    {SYS_pidfd_send_signal, on_pidfd_send, CALL_ALWAYS, 0},
    {SYS_rt_sigqueueinfo, on_queue, CALL_ALWAYS, 0},
    {SYS_tkill, on_kill_thread, CALL_ALWAYS, 0},
    {SYS_tgkill, on_kill_thread, CALL_ALWAYS, 0},
    {SYS_rt_tgsigqueueinfo, on_kill_thread, CALL_ALWAYS, 0},
    {SYS_rt_sigsuspend, on_await_signal, CALL_ALWAYS, 0},
    {SYS_rt_sigtimedwait, on_await_signal, CALL_ALWAYS, 0},
    {SYS_sched_yield, on_yield, CALL_ALWAYS, 0},
    {0},
};
