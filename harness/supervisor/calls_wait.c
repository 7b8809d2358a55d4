/* Calls that wait for descriptors. The supervisor looks at duplicates of them; what has come is there when the program
 * is quiet, and not earlier: nothing arrives while it has its turn. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/supervisor/calls.h"
#include "harness/supervisor/signal_descriptors.h"

enum { POLLED_MOST = 65536 };

/* --- limits --- */

#ifdef SYS_select
/* A struct timeval, in which the microseconds may be more than a second. */
static bool read_select_limit(const struct program_call *call, int64_t *limit_ns) {
    struct timeval limit;
    uint64_t address = call->arguments[4];
    *limit_ns = INT64_MAX;
    if (!address) return true;
    if (!call_read(call, address, &limit, sizeof limit)) return false;
    if (limit.tv_sec < 0 || limit.tv_usec < 0) {
        supervisor_refuse(call, EINVAL);
        return false;
    }
    if (limit.tv_sec < INT64_MAX / CLOCK_NS_PER_S / 2 && limit.tv_usec < INT64_MAX / CLOCK_NS_PER_US / 2)
        *limit_ns = limit.tv_sec * CLOCK_NS_PER_S + limit.tv_usec * CLOCK_NS_PER_US;
    return true;
}
#endif

/* For how long a call waits for events; INT64_MAX: without a limit; 0: it only looks. False: the call was refused. */
static bool read_limit(const struct program_call *call, int64_t *limit_ns) {
    int limit_ms = (int)call->arguments[3];
    switch (call->number) {
    case SYS_epoll_pwait2: return call_read_limit(call, 3, limit_ns);
    case SYS_ppoll: return call_read_limit(call, 2, limit_ns);
    case SYS_pselect6: return call_read_limit(call, 4, limit_ns);
#ifdef SYS_select
    case SYS_select: return read_select_limit(call, limit_ns);
    case SYS_poll: limit_ms = (int)call->arguments[2]; break;
#endif
    default: break; /* epoll_wait, epoll_pwait */
    }
    *limit_ns = limit_ms < 0 ? INT64_MAX : (int64_t)limit_ms * CLOCK_NS_PER_MS;
    return true;
}

/* --- epoll --- */

/* The kernel looks at the kind of the first descriptor before it looks for the second one in it. */
static bool is_epoll(const struct supervisor *supervisor, int fd) {
    return epoll_ctl(fd, EPOLL_CTL_DEL, supervisor->signal_fd, NULL) != 0 && errno == ENOENT;
}

/* The descriptors of an epoll instance that also waits for signals (signalfd), instead of the instance. */
static void wait_for_targets(struct held_call *held, const struct epoll_targets *targets) {
    held->kind = HELD_EVENTS;
    held->signals = targets->signals;
    for (int each = 0; each < targets->count && held->end == END_NOT_YET; each++)
        held_call_add_fd(held, targets->fds[each].fd, targets->fds[each].events);
    if (!targets->fits)
        supervisor_give_up(held->call.supervisor,
                           "the program waits for more than %d descriptors beside signals (signalfd)", EPOLL_TARGETS);
}

void on_epoll(const struct program_call *call) {
    struct epoll_targets targets;
    int fd = (int)call->arguments[0];
    int64_t limit_ns;
    if (!read_limit(call, &limit_ns)) return;
    if ((int)call->arguments[2] <= 0) {
        supervisor_refuse(call, EINVAL);
        return;
    }
    if (limit_ns == 0) {
        held_call_add_look(call);
        return;
    }
    struct held_call *held = held_call_add(call, HELD_EPOLL);
    held->deadline_ns = call_deadline_ns(call, limit_ns);
    if (call->supervisor->signal_descriptors && signal_descriptor_targets(call->process, fd, &targets))
        wait_for_targets(held, &targets);
    else if (held_call_add_fd(held, fd, POLLIN) && !is_epoll(call->supervisor, held->fds[0].fd))
        held_call_ready(held, END_REFUSE, EINVAL);
}

/* --- poll --- */

void on_poll(const struct program_call *call) {
    int64_t limit_ns;
    if (!read_limit(call, &limit_ns)) return;
    if (limit_ns == 0) {
        held_call_add_look(call);
        return;
    }
    uint64_t count = call->arguments[1];
    struct pollfd *array = count <= POLLED_MOST ? calloc(count ? count : 1, sizeof *array) : NULL;
    if (!array) {
        supervisor_refuse(call, EINVAL);
        return;
    }
    if (call_read(call, call->arguments[0], array, count * sizeof *array)) {
        struct held_call *held = held_call_add(call, HELD_POLL);
        held->deadline_ns = call_deadline_ns(call, limit_ns);
        for (uint64_t each = 0; each < count && held->end == END_NOT_YET; each++)
            if (array[each].fd >= 0) held_call_add_fd(held, array[each].fd, array[each].events);
        /* A closed descriptor is an answer of poll (POLLNVAL), which only the kernel can give. */
        if (held->end != END_NOT_YET) held->end = END_PASS;
    }
    free(array);
}

/* --- select --- */

static void wait_for_selected(const struct program_call *call, int64_t limit_ns) {
    static const short EVENTS[] = {POLLIN, POLLOUT, POLLPRI};
    fd_set sets[3];
    int most = (int)call->arguments[0];
    if (most < 0) {
        supervisor_refuse(call, EINVAL);
        return;
    }
    if (most > FD_SETSIZE) {
        supervisor_give_up(call->supervisor, "the program selects among more than %d descriptors", FD_SETSIZE);
        return;
    }
    memset(sets, 0, sizeof sets);
    for (int set = 0; set < 3; set++) {
        uint64_t address = call->arguments[set + 1];
        size_t size = ((size_t)most + 63) / 64 * 8;
        if (address && !call_read(call, address, &sets[set], size)) return;
    }
    struct held_call *held = held_call_add(call, HELD_SELECT);
    held->deadline_ns = call_deadline_ns(call, limit_ns);
    for (int fd = 0; fd < most && held->end == END_NOT_YET; fd++) {
        short events = 0;
        for (int set = 0; set < 3; set++)
            if (FD_ISSET(fd, &sets[set])) events = (short)(events | EVENTS[set]);
        if (events) held_call_add_fd(held, fd, events);
    }
}

void on_select(const struct program_call *call) {
    int64_t limit_ns;
    if (!read_limit(call, &limit_ns)) return;
    if (limit_ns == 0) held_call_add_look(call);
    else wait_for_selected(call, limit_ns);
}

/* --- reading, receiving, accepting --- */

/* How long a socket's own limit (SO_RCVTIMEO) lets it wait. */
static int64_t receive_limit_ns(int fd) {
    struct timeval limit = {0};
    socklen_t size = sizeof limit;
    if (getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &size) != 0) return INT64_MAX;
    int64_t limit_ns = limit.tv_sec * CLOCK_NS_PER_S + limit.tv_usec * CLOCK_NS_PER_US;
    return limit_ns > 0 ? limit_ns : INT64_MAX;
}

static uint64_t receive_flags(const struct program_call *call) {
    switch (call->number) {
    case SYS_recvmsg: return call->arguments[2];
    case SYS_recvfrom: /* fall through */
    case SYS_recvmmsg: return call->arguments[3];
    default: return 0;
    }
}

/* The kernel carries the call out when the descriptor is readable, which it is at once unless the other side has not
 * written yet. */
void on_transfer(const struct program_call *call) {
    if (call->number == SYS_recvmmsg && call->arguments[4]) { /* by the machine's clock */
        supervisor_give_up(call->supervisor, "the program receives with a limit of time (recvmmsg)");
        return;
    }
    struct held_call *held = held_call_add(call, HELD_TRANSFER);
    if (!held_call_add_fd(held, (int)call->arguments[0], POLLIN)) return;
    int fd = held->fds[0].fd;
    if (poll(held->fds, 1, 0) > 0) {
        held->end = END_PASS;
        held_call_end(held, &(struct program_call){0});
    } else if (receive_flags(call) & MSG_DONTWAIT || fcntl(fd, F_GETFL) & O_NONBLOCK) {
        held_calls_drop(call->supervisor, NULL, call->tid);
        held_call_add_look(call);
    } else {
        held->deadline_ns = call_deadline_ns(call, receive_limit_ns(fd));
    }
}

/* --- signals as descriptors --- */

void on_signalfd(const struct program_call *call) {
    call->supervisor->signal_descriptors = true;
    supervisor_pass(call);
}
