#include "harness/supervisor/held_calls.h"

#include <assert.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/supervisor/signal_descriptors.h"

struct held_call *held_call_add(const struct program_call *call, enum held_kind kind) {
    struct held_call *held = calloc(1, sizeof *held), **end = &call->supervisor->held;
    if (!held) abort();
    *held = (struct held_call){.call = *call,
                               .kind = kind,
                               .order = ++call->supervisor->next_order,
                               .began_ns = call->supervisor->clock.mono_ns,
                               .deadline_ns = INT64_MAX};
    while (*end) end = &(*end)->next;
    *end = held;
    call->process->held++;
    return held;
}

static void held_call_remove(struct held_call *held) {
    struct held_call **place = &held->call.supervisor->held;
    while (*place != held) place = &(*place)->next;
    *place = held->next;
    held->call.process->held--;
    for (int each = 0; each < held->fd_count; each++) close(held->fds[each].fd);
    free(held->fds);
    free(held);
}

enum { LOOKS_MOST = 200, LOOK_NS = CLOCK_NS_PER_MS };

/* Counts a look. True: it takes time. */
static bool look_takes_time(struct supervisor *supervisor) {
    if (supervisor->looked_ns != supervisor->clock.mono_ns) supervisor->looks = 0;
    supervisor->looked_ns = supervisor->clock.mono_ns;
    return ++supervisor->looks >= LOOKS_MOST;
}

void held_call_add_look(const struct program_call *call) {
    struct held_call *held = held_call_add(call, HELD_LOOK);
    if (!look_takes_time(call->supervisor)) held_call_ready(held, END_PASS, 0);
    else held->deadline_ns = call->supervisor->clock.mono_ns + LOOK_NS;
}

bool held_call_add_fd(struct held_call *held, int fd, short events) {
    const struct program_call *call = &held->call;
    int duplicate = program_duplicate_fd(call->process, fd);
    if (duplicate < 0 && errno == EBADF) {
        held_call_ready(held, END_REFUSE, EBADF);
        return false;
    }
    if (duplicate < 0) {
        supervisor_give_up(call->supervisor, "a descriptor of the program cannot be duplicated (pidfd_getfd: %s)%s",
                           strerror(errno), errno == EPERM ? "; in Docker, --cap-add SYS_PTRACE allows it" : "");
        return false;
    }
    uint64_t signals = call->supervisor->signal_descriptors ? signal_descriptor_signals(call->process, fd) : 0;
    held->signals |= signals;
    held->fds = realloc(held->fds, (size_t)(held->fd_count + 1) * sizeof *held->fds);
    if (!held->fds) abort();
    held->fds[held->fd_count++] = (struct pollfd){.fd = duplicate, .events = signals ? 0 : events};
    return true;
}

void held_call_ready(struct held_call *held, enum held_end end, int64_t value) {
    assert(held->end == END_NOT_YET && end != END_NOT_YET); /* a thread becomes ready once, and keeps its place */
    held->end = end;
    held->value = value;
    held->order = ++held->call.supervisor->next_order;
}

/* Where a call wants to know how much of its limit was left; 0: nowhere. */
static uint64_t left_address(const struct program_call *call, enum held_kind kind) {
    if (call->number == SYS_nanosleep) return call->arguments[1];
    if (kind == HELD_SLEEP) return call->arguments[1] & TIMER_ABSTIME ? 0 : call->arguments[3];
    if (call->number == SYS_ppoll) return call->arguments[2];
    return kind == HELD_SELECT ? call->arguments[4] : 0;
}

void held_call_write_left(const struct held_call *held) {
    const struct program_call *call = &held->call;
    uint64_t address = left_address(call, held->kind);
    int64_t left_ns = held->deadline_ns - call->supervisor->clock.mono_ns;
    struct timespec left = clock_timespec(left_ns > 0 ? left_ns : 0);
#ifdef SYS_select
    if (call->number == SYS_select) left.tv_nsec /= CLOCK_NS_PER_US; /* a struct timeval, which has the same words */
#endif
    if (address && (left_ns > 0 || held->kind != HELD_SLEEP)) program_write(call->process, address, &left, sizeof left);
}

struct held_call *held_call_of(const struct supervisor *supervisor, pid_t tid) {
    for (struct held_call *each = supervisor->held; each; each = each->next)
        if (each->call.tid == tid && each->end == END_NOT_YET) return each;
    return NULL;
}

void held_calls_drop(struct supervisor *supervisor, const struct program_process *process, pid_t tid) {
    for (struct held_call *next, *each = supervisor->held; each; each = next) {
        next = each->next;
        if ((process && each->call.process == process) || (tid && each->call.tid == tid)) held_call_remove(each);
    }
}

/* --- turns --- */

struct held_call *held_calls_next_ready(const struct supervisor *supervisor) {
    struct held_call *first = NULL;
    for (struct held_call *each = supervisor->held; each; each = each->next)
        if (each->end != END_NOT_YET && (!first || each->order < first->order)) first = each;
    return first;
}

bool held_call_end(struct held_call *held, struct program_call *call) {
    enum held_end end = held->end;
    int64_t value = held->value;
    assert(end != END_NOT_YET); /* only a ready thread gets its turn */
    *call = held->call;
    held_call_remove(held);
    switch (end) {
    case END_ANSWER: supervisor_answer(call, value); break;
    case END_REFUSE: supervisor_refuse(call, (int)value); break;
    case END_PASS: supervisor_pass(call); break;
    default: break; /* END_HANDLE: the caller's */
    }
    return end == END_HANDLE;
}

void held_call_add_turn(const struct program_call *call, uint64_t order) {
    struct held_call *held = held_call_add(call, HELD_TURN);
    held_call_ready(held, END_HANDLE, 0);
    held->order = order;
}

/* --- calls that come --- */

/* The ioctl itself would wait without a limit. */
bool held_calls_receive(struct supervisor *supervisor, struct program_call *call, int limit_ms) {
    struct pollfd fd = {.fd = supervisor->listener, .events = POLLIN};
    struct seccomp_notif received = {0};
    if (poll(&fd, 1, limit_ms) <= 0 || !(fd.revents & POLLIN) ||
        ioctl(supervisor->listener, SECCOMP_IOCTL_NOTIF_RECV, &received) != 0)
        return false;
    *call = (struct program_call){
        .supervisor = supervisor, .tid = (pid_t)received.pid, .number = received.data.nr, .id = received.id};
    memcpy(call->arguments, received.data.args, sizeof call->arguments);
    return true;
}

pid_t held_calls_hold_next(struct supervisor *supervisor) {
    struct program_call call;
    if (!held_calls_receive(supervisor, &call, 0)) return 0;
    struct program_thread *thread = program_find_thread(&supervisor->program, call.tid);
    if (!thread) return 0;
    call.process = thread->process;
    held_call_add_turn(&call, ++supervisor->next_order);
    return call.process->pid;
}

/* --- descriptors --- */

/* What makes a descriptor ready in each of the three sets of select. */
static const short SELECT_ASKED[] = {POLLIN, POLLOUT, POLLPRI};
static const short SELECT_READY[] = {POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI};

/* poll also reports errors and ends that were not asked for; select reports them in the sets that wait for them. */
static int selected_fds(struct held_call *held) {
    int ready = 0;
    for (int each = 0; each < held->fd_count; each++) {
        short asked = held->fds[each].events, wanted = 0;
        for (int set = 0; set < 3; set++)
            if (asked & SELECT_ASKED[set]) wanted = (short)(wanted | SELECT_READY[set]);
        held->fds[each].revents = (short)(held->fds[each].revents & wanted);
        ready += held->fds[each].revents != 0;
    }
    return ready;
}

static int ready_fds(struct held_call *held) {
    if (held->end != END_NOT_YET || held->fd_count == 0) return 0;
    int ready = poll(held->fds, (nfds_t)held->fd_count, 0);
    if (ready > 0 && held->kind == HELD_SELECT) ready = selected_fds(held);
    return ready > 0 ? ready : 0;
}

/* Looked for once after each signal that the program has sent; always where the kernel sends one, for a child. */
static bool is_signalled(struct held_call *held) {
    const struct supervisor *supervisor = held->call.supervisor;
    bool seen = held->signals_seen == supervisor->signals + 1 && !(held->signals >> (SIGCHLD - 1) & 1);
    if (held->end != END_NOT_YET || !held->signals || seen) return false;
    held->signals_seen = supervisor->signals + 1;
    return program_pending_signals(held->call.tid) & held->signals;
}

enum { FDS_TOGETHER = 128 };

/* A short way for the usual case: one call asks for the descriptors of all held calls. */
static bool all_are_silent(const struct supervisor *supervisor) {
    struct pollfd fds[FDS_TOGETHER];
    nfds_t count = 0;
    for (const struct held_call *each = supervisor->held; each; each = each->next) {
        if (each->end != END_NOT_YET || each->fd_count == 0) continue;
        if (count + (nfds_t)each->fd_count > FDS_TOGETHER) return false;
        memcpy(&fds[count], each->fds, (size_t)each->fd_count * sizeof *fds);
        count += (nfds_t)each->fd_count;
    }
    return count == 0 || poll(fds, count, 0) == 0;
}

bool held_calls_any_readable(const struct supervisor *supervisor) {
    bool silent = all_are_silent(supervisor);
    for (struct held_call *each = supervisor->held; each; each = each->next)
        if (is_signalled(each) || (!silent && ready_fds(each))) return true;
    return false;
}

/* The kernel copies at most this many events at once into our memory; a program that asks for more gets the rest with
 * its next call. */
enum { EVENTS_MOST = 1024 };

/* False: there was none, although the instance was readable (another thread's edge). */
static bool deliver_events(struct held_call *held) {
    static struct epoll_event events[EVENTS_MOST];
    const uint64_t *arguments = held->call.arguments;
    int most = (int)arguments[2];
    int count = epoll_wait(held->fds[0].fd, events, most < EVENTS_MOST ? most : EVENTS_MOST, 0);
    if (count == 0) return false;
    if (count < 0) {
        held_call_ready(held, END_REFUSE, errno);
        return true;
    }
    bool written = program_write(held->call.process, arguments[1], events, (size_t)count * sizeof events[0]);
    held_call_ready(held, written ? END_ANSWER : END_REFUSE, written ? count : EFAULT);
    return true;
}

/* The program's array may name a descriptor several times, or none (below 0): `value` of an entry is its place. */
static void deliver_poll(struct held_call *held) {
    uint64_t array = held->call.arguments[0];
    size_t count = (size_t)held->call.arguments[1];
    struct pollfd *theirs = calloc(count ? count : 1, sizeof *theirs);
    if (!theirs) abort();
    bool copied = program_read(held->call.process, array, theirs, count * sizeof *theirs);
    int64_t ready = 0;
    int next = 0;
    for (size_t each = 0; copied && each < count; each++) {
        theirs[each].revents = 0;
        if (theirs[each].fd >= 0 && next < held->fd_count) theirs[each].revents = held->fds[next++].revents;
        ready += theirs[each].revents != 0;
    }
    copied = copied && program_write(held->call.process, array, theirs, count * sizeof *theirs);
    free(theirs);
    held_call_write_left(held);
    held_call_ready(held, copied ? END_ANSWER : END_REFUSE, copied ? ready : EFAULT);
}

/* Copies the three sets of select from the program's memory, or into it. */
static bool copy_sets(const struct held_call *held, bool into, fd_set sets[3]) {
    const uint64_t *arguments = held->call.arguments;
    size_t size = ((size_t)(int)arguments[0] + 63) / 64 * 8; /* the kernel, too, takes the lower half of the register */
    for (int set = 0; set < 3; set++) {
        uint64_t address = arguments[set + 1];
        if (!address) continue;
        bool copied = into ? program_write(held->call.process, address, &sets[set], size)
                           : program_read(held->call.process, address, &sets[set], size);
        if (!copied) return false;
    }
    return true;
}

/* The sets name the descriptors in the order of `fds`. */
static void deliver_select(struct held_call *held) {
    fd_set asked[3], ready[3];
    memset(asked, 0, sizeof asked);
    memset(ready, 0, sizeof ready);
    int64_t count = 0;
    int next = 0;
    bool copied = copy_sets(held, false, asked);
    for (int fd = 0; fd < (int)held->call.arguments[0] && next < held->fd_count; fd++) {
        bool is_named = false;
        for (int set = 0; set < 3; set++) {
            if (!FD_ISSET(fd, &asked[set])) continue;
            is_named = true;
            if (!(held->fds[next].revents & SELECT_READY[set])) continue;
            FD_SET(fd, &ready[set]);
            count++;
        }
        next += is_named;
    }
    copied = copied && copy_sets(held, true, ready);
    held_call_write_left(held);
    held_call_ready(held, copied ? END_ANSWER : END_REFUSE, copied ? count : EFAULT);
}

bool held_calls_deliver(struct supervisor *supervisor) {
    bool silent = all_are_silent(supervisor);
    for (struct held_call *each = supervisor->held; each; each = each->next) {
        bool signalled = is_signalled(each);
        if (!signalled && (silent || !ready_fds(each))) continue;
        supervisor->looks = 0;
        if (signalled) {
            held_call_ready(each, END_PASS, 0);
            return true;
        }
        if (each->kind == HELD_EPOLL) {
            if (deliver_events(each)) return true;
            continue;
        }
        if (each->kind == HELD_POLL) deliver_poll(each);
        else if (each->kind == HELD_SELECT) deliver_select(each);
        else held_call_ready(each, END_PASS, 0);
        return true;
    }
    return false;
}

/* --- deadlines --- */

/* By the program's monotonic clock. A deadline of the wall clock moves when that clock is set. */
static int64_t held_call_deadline_of(const struct held_call *held) {
    const struct program_clock *clock = &held->call.supervisor->clock;
    if (held->end != END_NOT_YET) return INT64_MAX;
    if (!held->by_wall_clock || held->deadline_ns == INT64_MAX) return held->deadline_ns;
    return held->deadline_ns - clock->wall_ns + clock->mono_ns;
}

static int64_t held_call_late_ns(const struct held_call *held) {
    return held->kind == HELD_LOOK ? 0 : program_clock_late_ns(held->began_ns, held_call_deadline_of(held));
}

static int64_t held_call_due_ns(const struct held_call *held) {
    return held_call_deadline_of(held) + held_call_late_ns(held);
}

void held_call_look_if_over(struct held_call *held) {
    struct supervisor *supervisor = held->call.supervisor;
    if (held_call_deadline_of(held) > supervisor->clock.mono_ns || !look_takes_time(supervisor)) return;
    held->by_wall_clock = false;
    held->deadline_ns = supervisor->clock.mono_ns + LOOK_NS;
}

int64_t held_calls_next_deadline_ns(const struct supervisor *supervisor) {
    int64_t next_ns = INT64_MAX;
    for (const struct held_call *each = supervisor->held; each; each = each->next)
        if (held_call_due_ns(each) < next_ns) next_ns = held_call_due_ns(each);
    return next_ns;
}

bool held_calls_any_shorter(const struct supervisor *supervisor, int64_t limit_ns) {
    for (const struct held_call *each = supervisor->held; each; each = each->next) {
        int64_t deadline_ns = held_call_deadline_of(each);
        if (deadline_ns < INT64_MAX && deadline_ns - each->began_ns < limit_ns) return true;
    }
    return false;
}

static struct held_call *first_due(const struct supervisor *supervisor) {
    struct held_call *first = NULL;
    for (struct held_call *each = supervisor->held; each; each = each->next) {
        int64_t due_ns = held_call_due_ns(each);
        if (due_ns > supervisor->clock.mono_ns) continue;
        if (!first || due_ns < held_call_due_ns(first)) first = each;
    }
    return first;
}

static void held_call_expire(struct held_call *held) {
    static fd_set nothing[3];
    held->call.supervisor->late_ns += held_call_late_ns(held);
    held_call_write_left(held);
    switch (held->kind) {
    case HELD_MUTEX: /* fall through */
    case HELD_FUTEX: held_call_ready(held, END_REFUSE, ETIMEDOUT); break;
    case HELD_LOOK: held_call_ready(held, END_PASS, 0); break;
    case HELD_TRANSFER: /* fall through */
    case HELD_SIGNAL: held_call_ready(held, END_REFUSE, EAGAIN); break;
    case HELD_SELECT: /* what it was asked for is cleared, since none of it has come */
        if (copy_sets(held, true, nothing)) held_call_ready(held, END_ANSWER, 0);
        else held_call_ready(held, END_REFUSE, EFAULT);
        break;
    default: held_call_ready(held, END_ANSWER, 0); break;
    }
}

bool held_calls_expire(struct supervisor *supervisor) {
    struct held_call *due = first_due(supervisor);
    if (!due) return false;
    for (; due; due = first_due(supervisor)) held_call_expire(due);
    return true;
}
