#include "harness/supervisor/turns.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/hang_limit.h"
#include "harness/supervisor/calls.h"
#include "harness/supervisor/image.h"
#include "harness/supervisor/thread_states.h"

/* A thread that computes for this long of processor time without a call may be waiting for another one that is ready,
 * which goes on beside it then, or for the clock, which creeps ahead. Neither is the same again with the same seed. */
enum { SPIN_MS = 500 };
/* Without a call for this long, in which no thread used a processor, the program waits in a call that is not known. */
enum { UNKNOWN_CALL_LIMIT_MS = 2000, CALL_POLL_MS = 10 };
/* A call that waits for a device ends by itself, however busy the machine's disk is (an fdatasync of etcd has taken
 * more than 2 s). */
enum { DEVICE_LIMIT_MS = 120000 };

/* Of a program that must rest: so many calls, or so many spins, until it is quiet are without end. A Java virtual
 * machine with Redisson makes 3,000 calls at most. */
enum { CALLS_MOST = 200000, SPINS_MOST = 50 };

/* --- start and end --- */

bool turns_begin(struct supervisor *supervisor, char *const *words) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    supervisor->listener = -1;
    supervisor->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    return image_start(supervisor, words);
}

void turns_end(struct supervisor *supervisor) {
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        struct program_process *process = &supervisor->program.processes[each];
        if (!process->pid) continue;
        kill(process->pid, SIGKILL);
        held_calls_drop(supervisor, process, 0);
        program_forget_process(&supervisor->program, process);
    }
    if (supervisor->root > 0 && !supervisor->root_ended) waitpid(supervisor->root, &supervisor->status, __WALL);
    timers_free(supervisor);
    if (supervisor->listener >= 0) close(supervisor->listener);
    close(supervisor->signal_fd);
}

/* --- calls --- */

static void handle(const struct program_call *call) {
    struct supervisor *supervisor = call->supervisor;
    if (supervisor->trace)
        fprintf(supervisor->trace, "%.9f %d/%d %d(%" PRIx64 ", %" PRIx64 ", %" PRIx64 ", %" PRIx64 ")\n",
                (double)(supervisor->clock.mono_ns - SHARED_PAGE_UPTIME_NS) / (double)CLOCK_NS_PER_S,
                call->process->pid, call->tid, call->number, call->arguments[0], call->arguments[1], call->arguments[2],
                call->arguments[3]);
    const struct supervised_call *entry = call_find(call->number);
    if (entry->handle) entry->handle(call);
    else supervisor_pass(call);
}

/* The thread runs from now on. */
static void give_turn_to(struct held_call *next) {
    struct program_call call;
    if (held_call_end(next, &call)) handle(&call);
}

static int running(const struct supervisor *supervisor) {
    return program_running(&supervisor->program) + supervisor->birth_count;
}

static void take_call(struct program_call *call) {
    struct supervisor *supervisor = call->supervisor;
    bool known = program_knows_thread(&supervisor->program, call->tid);
    struct program_thread *thread = program_find_thread(&supervisor->program, call->tid);
    if (!thread) {
        supervisor_pass(call); /* it was killed, or is one too many, which has been written down */
        return;
    }
    supervisor->calls++;
    call->process = thread->process;
    call->process->threads += !known;
    if (!known && supervisor->birth_count > 0) {
        /* The first call of a new thread: its place is where it was made, however late the machine started it. */
        held_call_add_turn(call, supervisor->births[0]);
        supervisor->birth_count--;
        memmove(supervisor->births, supervisor->births + 1,
                (size_t)supervisor->birth_count * sizeof supervisor->births[0]);
    } else if (supervisor->birth_count > 0) {
        held_call_add_turn(call, 0);
    } else if (running(supervisor) > 1) {
        held_call_add_turn(call, ++supervisor->next_order);
    } else {
        handle(call);
    }
}

/* A held call whose thread makes another one has ended because of a signal. */
static bool receive_call(struct supervisor *supervisor) {
    struct program_call call;
    if (!held_calls_receive(supervisor, &call, CALL_POLL_MS)) return false;
    held_calls_drop(supervisor, NULL, call.tid); /* before the new one is held: both have the same thread */
    take_call(&call);
    return true;
}

/* --- ends that no call announces --- */

static bool forget_killed(struct supervisor *supervisor) {
    bool found = false;
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        struct program_process *process = &supervisor->program.processes[each];
        struct pollfd fd = {.fd = process->pid_fd, .events = POLLIN};
        if (!process->pid || (!process->is_killed && poll(&fd, 1, 0) <= 0)) continue;
        life_process_ended(supervisor, process);
        found = true;
    }
    return found;
}

static bool was_killed(const struct supervisor *supervisor) {
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        struct pollfd fd = {.fd = supervisor->program.processes[each].pid_fd, .events = POLLIN};
        if (supervisor->program.processes[each].pid && poll(&fd, 1, 0) > 0) return true;
    }
    return false;
}

/* --- until the program is quiet --- */

/* Of all processes of the program together. */
static int64_t processor_ns(const struct supervisor *supervisor) {
    int64_t used_ns = 0;
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        struct timespec used;
        clockid_t clock;
        pid_t pid = supervisor->program.processes[each].pid;
        if (pid && clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0)
            used_ns += used.tv_sec * CLOCK_NS_PER_S + used.tv_nsec;
    }
    return used_ns;
}

static void break_spin(struct supervisor *supervisor) {
    struct held_call *next = held_calls_next_ready(supervisor);
    supervisor->spins++;
    if (next) {
        give_turn_to(next);
        return;
    }
    program_clock_creep(&supervisor->clock, CLOCK_NS_PER_MS);
    supervisor_publish_clock(supervisor);
}

/* A clone that has failed makes no thread whose first call could come. True: there was one. */
static bool forget_unborn(struct supervisor *supervisor) {
    struct program *program = &supervisor->program;
    if (supervisor->birth_count == 0 || program_running(program) > 0 || thread_states_find_newborn(supervisor))
        return false;
    supervisor->birth_count = 0;
    for (int each = 0; each < PROGRAM_PROCESSES; each++) {
        struct program_process *maker = &program->processes[each];
        maker->vforks -= maker->unborn_vforks;
        maker->unborn_vforks = 0;
    }
    return true;
}

/* Waits for the next call while threads run. False: none came, and the program cannot be supervised any further. */
static bool await_call(struct supervisor *supervisor) {
    struct pollfd fds[] = {{.fd = supervisor->listener, .events = POLLIN},
                           {.fd = supervisor->signal_fd, .events = POLLIN}};
    int64_t began_ns = processor_ns(supervisor), used_ns = began_ns;
    int64_t until_ns = hang_limit_deadline_ns(UNKNOWN_CALL_LIMIT_MS);
    int64_t device_until_ns = hang_limit_deadline_ns(DEVICE_LIMIT_MS);
    for (;;) {
        int ready = poll(fds, 2, CALL_POLL_MS);
        if (ready > 0 && fds[1].revents) supervisor_drain_signals(supervisor);
        if ((ready > 0 && fds[0].revents & POLLIN) || forget_killed(supervisor)) return true;
        if (ready == 0 && forget_unborn(supervisor)) return true;
        int64_t now_ns = processor_ns(supervisor);
        if (now_ns - began_ns > SPIN_MS * (int64_t)CLOCK_NS_PER_MS) {
            break_spin(supervisor);
            return true;
        }
        if (now_ns != used_ns) until_ns = hang_limit_deadline_ns(UNKNOWN_CALL_LIMIT_MS);
        used_ns = now_ns;
        if (!hang_limit_is_over(until_ns)) continue;
        struct blocked_thread blocked;
        bool waits = thread_states_find_blocked(supervisor, &blocked);
        if (waits && (!blocked.by_device || hang_limit_is_over(device_until_ns))) {
            supervisor_give_up(supervisor, "the program waits in a call that is not known: %s", blocked.call);
            return false;
        }
        until_ns = hang_limit_deadline_ns(UNKNOWN_CALL_LIMIT_MS);
    }
}

/* The kernel has cleared a word for each thread that has ended once the thread is gone. Until then nobody has a turn:
 * a thread that is ready would see that word before or after, as the machine has it. */
static bool look_after_exits(struct supervisor *supervisor) {
    int64_t until_ns = hang_limit_deadline_ns(UNKNOWN_CALL_LIMIT_MS);
    for (int each = 0; each < supervisor->exit_count; each++) {
        const struct ended_thread *ended = &supervisor->exits[each];
        while (syscall(SYS_tgkill, ended->pid, ended->tid, 0) == 0 && !hang_limit_is_over(until_ns)) poll(NULL, 0, 0);
    }
    bool any = supervisor->exit_count > 0;
    supervisor->exit_count = 0;
    return any && futex_recheck(supervisor);
}

/* What lets the quiet program go on at this time, in this order: ends of threads before what they wake, what has come
 * before the deadlines of those that wait for it (as the scheduler does), and calls before the program's own timers. */
static bool find_ready(struct supervisor *supervisor) {
    bool have_ended = look_after_exits(supervisor);
    if (have_ended || held_calls_next_ready(supervisor)) return true;
    return forget_killed(supervisor) || held_calls_deliver(supervisor) || held_calls_expire(supervisor) ||
           timers_expire(supervisor);
}

static bool turns_are_over(const struct supervisor *supervisor) {
    return program_has_ended(&supervisor->program) || (supervisor->ends_with_root && supervisor->root_ended);
}

/* True: the program goes on, and may. */
static bool may_go_on(struct supervisor *supervisor, uint64_t calls, uint64_t spins) {
    bool endless = supervisor->calls - calls > CALLS_MOST || supervisor->spins - spins > SPINS_MOST;
    if (endless && supervisor->must_rest)
        supervisor_give_up(supervisor, "the program goes on and on without waiting for anything (a runtime that waits "
                                       "actively has to be told not to: BEAM by +sbwt none)");
    return !supervisor->reason[0] && !turns_are_over(supervisor);
}

bool turns_run(struct supervisor *supervisor) {
    uint64_t calls = supervisor->calls, spins = supervisor->spins;
    if (program_clock_update(&supervisor->clock)) supervisor_publish_clock(supervisor);
    while (may_go_on(supervisor, calls, spins)) {
        if (running(supervisor) > 0) {
            if (!receive_call(supervisor) && !await_call(supervisor)) return false;
            continue;
        }
        if (!find_ready(supervisor)) return true;
        struct held_call *next = held_calls_next_ready(supervisor);
        if (next) give_turn_to(next);
    }
    return false;
}

bool turns_have_news(const struct supervisor *supervisor) {
    return held_calls_any_readable(supervisor) || was_killed(supervisor);
}

/* 73 years, after which the wall clock would soon have no number any more. */
static const int64_t FOR_EVER_NS = INT64_MAX / 4;

int64_t turns_deadline_ns(const struct supervisor *supervisor) {
    int64_t held_ns = held_calls_next_deadline_ns(supervisor), timer_ns = timers_next_deadline_ns(supervisor);
    int64_t first_ns = held_ns < timer_ns ? held_ns : timer_ns;
    return first_ns < FOR_EVER_NS ? first_ns : INT64_MAX;
}
