#include "harness/supervisor/supervisor.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/supervisor/vdso_code.h"

void supervisor_give_up(struct supervisor *supervisor, const char *format, ...) {
    if (supervisor->reason[0]) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(supervisor->reason, sizeof supervisor->reason, format, arguments);
    va_end(arguments);
}

/* --- answers --- */

/* A thread that was killed meanwhile has no call any more (ENOENT). */
static void respond(const struct program_call *call, struct seccomp_notif_resp response) {
    response.id = call->id;
    if (ioctl(call->supervisor->listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0 && errno != ENOENT)
        supervisor_give_up(call->supervisor, "a call cannot be answered: %s", strerror(errno));
}

void supervisor_answer(const struct program_call *call, int64_t value) {
    respond(call, (struct seccomp_notif_resp){.val = value});
}

void supervisor_refuse(const struct program_call *call, int error) {
    respond(call, (struct seccomp_notif_resp){.error = -error});
}

void supervisor_pass(const struct program_call *call) {
    respond(call, (struct seccomp_notif_resp){.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE});
}

/* --- the clocks, and what is pending --- */

void supervisor_publish_clock_to(struct supervisor *supervisor, const struct program_process *process) {
    const struct program_clock *clock = &supervisor->clock;
    if (!process->clock_words) return;
    struct vdso_words words = {clock->wall_ns / CLOCK_NS_PER_S, clock->wall_ns % CLOCK_NS_PER_S,
                               clock->mono_ns / CLOCK_NS_PER_S, clock->mono_ns % CLOCK_NS_PER_S};
    ssize_t written = pwrite(process->memory_fd, &words, sizeof words, (off_t)process->clock_words);
    if (written == 0) return; /* it has just ended, and its memory with it; those who wait for its end are woken then */
    if (written != sizeof words)
        supervisor_give_up(supervisor, "the clock of process %d cannot be written: %s", process->pid, strerror(errno));
}

void supervisor_publish_clock(struct supervisor *supervisor) {
    for (int each = 0; each < PROGRAM_PROCESSES; each++)
        if (supervisor->program.processes[each].pid)
            supervisor_publish_clock_to(supervisor, &supervisor->program.processes[each]);
}

void supervisor_drain_signals(const struct supervisor *supervisor) {
    struct signalfd_siginfo info;
    while (read(supervisor->signal_fd, &info, sizeof info) > 0) continue;
}
