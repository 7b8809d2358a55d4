/* Calls that wait for descriptors. The supervisor looks at duplicates of them; what has come is there when the program
 * is quiet, and not earlier: nothing arrives while it has its turn. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/* --- epoll --- */

/* The kernel looks at the kind of the first descriptor before it looks for the second one in it. */
static bool is_epoll(const struct supervisor *supervisor, int fd) {
    return epoll_ctl(fd, EPOLL_CTL_DEL, supervisor->signal_fd, NULL) != 0 && errno == ENOENT;
}

/* The descriptors of an epoll instance that also waits for signals (signalfd), instead of the instance. */
static void wait_for_targets(struct supervisor *supervisor, struct held_call *held,
                             const struct epoll_targets *targets) {
    held->kind = HELD_EVENTS;
    held->signals = targets->signals;
    for (int each = 0; each < targets->count && held->end == END_NOT_YET; each++)
        held_call_add_fd(supervisor, held, targets->fds[each].fd, targets->fds[each].events);
    if (!targets->fits)
        supervisor_give_up(supervisor, "the program waits for more than %d descriptors beside signals (signalfd)",
                           EPOLL_TARGETS);
}

static void wait_for_events(struct supervisor *supervisor, struct program_process *process,
                            const struct seccomp_notif *call, int64_t limit_ns) {
    struct held_call *held = held_call_add(supervisor, process, call, HELD_EPOLL);
    held->deadline_ns = call_deadline_ns(supervisor, limit_ns);
    struct epoll_targets targets;
    if (supervisor->signal_descriptors && signal_descriptor_targets(process, (int)call_argument(call, 0), &targets)) {
        wait_for_targets(supervisor, held, &targets);
        return;
    }
    if (held_call_add_fd(supervisor, held, (int)call_argument(call, 0), POLLIN) &&
        !is_epoll(supervisor, held->fds[0].fd))
        held_call_ready(supervisor, held, END_REFUSE, EINVAL);
}

static int64_t limit_of_ms(int limit_ms) {
    return limit_ms < 0 ? INT64_MAX : (int64_t)limit_ms * CLOCK_NS_PER_MS;
}

static void on_epoll_wait(struct supervisor *supervisor, struct program_process *process,
                          const struct seccomp_notif *call) {
    int limit_ms = (int)call_argument(call, 3);
    if ((int)call_argument(call, 2) <= 0) supervisor_refuse(supervisor, call, EINVAL);
    else if (limit_ms == 0) held_call_add_look(supervisor, process, call);
    else wait_for_events(supervisor, process, call, limit_of_ms(limit_ms));
}

static void on_epoll_pwait2(struct supervisor *supervisor, struct program_process *process,
                            const struct seccomp_notif *call) {
    int64_t limit_ns;
    if (!call_read_limit(supervisor, process, call, 3, &limit_ns)) return;
    if ((int)call_argument(call, 2) <= 0) supervisor_refuse(supervisor, call, EINVAL);
    else if (limit_ns == 0) held_call_add_look(supervisor, process, call);
    else wait_for_events(supervisor, process, call, limit_ns);
}

/* --- poll --- */

static void wait_for_polled(struct supervisor *supervisor, struct program_process *process,
                            const struct seccomp_notif *call, int64_t limit_ns) {
    uint64_t count = call_argument(call, 1);
    struct pollfd *array = count <= POLLED_MOST ? calloc(count ? count : 1, sizeof *array) : NULL;
    if (!array) {
        supervisor_refuse(supervisor, call, EINVAL);
        return;
    }
    if (call_read(supervisor, process, call, call_argument(call, 0), array, count * sizeof *array)) {
        struct held_call *held = held_call_add(supervisor, process, call, HELD_POLL);
        held->deadline_ns = call_deadline_ns(supervisor, limit_ns);
        for (uint64_t each = 0; each < count && held->end == END_NOT_YET; each++)
            if (array[each].fd >= 0) held_call_add_fd(supervisor, held, array[each].fd, array[each].events);
        /* A closed descriptor is an answer of poll (POLLNVAL), which only the kernel can give. */
        if (held->end != END_NOT_YET) held->end = END_PASS;
    }
    free(array);
}

#ifdef SYS_poll
static void on_poll(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    int limit_ms = (int)call_argument(call, 2);
    if (limit_ms == 0) held_call_add_look(supervisor, process, call);
    else wait_for_polled(supervisor, process, call, limit_of_ms(limit_ms));
}
#endif

static void on_ppoll(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    int64_t limit_ns;
    if (!call_read_limit(supervisor, process, call, 2, &limit_ns)) return;
    if (limit_ns == 0) held_call_add_look(supervisor, process, call);
    else wait_for_polled(supervisor, process, call, limit_ns);
}

/* --- select --- */

static void wait_for_selected(struct supervisor *supervisor, struct program_process *process,
                              const struct seccomp_notif *call, int64_t limit_ns) {
    static const short EVENTS[] = {POLLIN, POLLOUT, POLLPRI};
    fd_set sets[3];
    int most = (int)call_argument(call, 0);
    if (most < 0) {
        supervisor_refuse(supervisor, call, EINVAL);
        return;
    }
    if (most > FD_SETSIZE) {
        supervisor_give_up(supervisor, "the program selects among more than %d descriptors", FD_SETSIZE);
        return;
    }
    memset(sets, 0, sizeof sets);
    for (int set = 0; set < 3; set++) {
        uint64_t address = call_argument(call, set + 1);
        size_t size = ((size_t)most + 63) / 64 * 8;
        if (address && !call_read(supervisor, process, call, address, &sets[set], size)) return;
    }
    struct held_call *held = held_call_add(supervisor, process, call, HELD_SELECT);
    held->deadline_ns = call_deadline_ns(supervisor, limit_ns);
    for (int fd = 0; fd < most && held->end == END_NOT_YET; fd++) {
        short events = 0;
        for (int set = 0; set < 3; set++)
            if (FD_ISSET(fd, &sets[set])) events = (short)(events | EVENTS[set]);
        if (events) held_call_add_fd(supervisor, held, fd, events);
    }
}

static void on_pselect(struct supervisor *supervisor, struct program_process *process,
                       const struct seccomp_notif *call) {
    int64_t limit_ns;
    if (!call_read_limit(supervisor, process, call, 4, &limit_ns)) return;
    if (limit_ns == 0) held_call_add_look(supervisor, process, call);
    else wait_for_selected(supervisor, process, call, limit_ns);
}

#ifdef SYS_select
static void on_select(struct supervisor *supervisor, struct program_process *process,
                      const struct seccomp_notif *call) {
    struct timeval limit = {.tv_sec = -1};
    uint64_t timeout = call_argument(call, 4);
    if (timeout && !call_read(supervisor, process, call, timeout, &limit, sizeof limit)) return;
    if (timeout && (limit.tv_sec < 0 || limit.tv_usec < 0)) {
        supervisor_refuse(supervisor, call, EINVAL);
    } else if (timeout && limit.tv_sec == 0 && limit.tv_usec == 0) {
        held_call_add_look(supervisor, process, call);
    } else {
        bool fits =
            timeout && limit.tv_sec < INT64_MAX / CLOCK_NS_PER_S / 2 && limit.tv_usec < INT64_MAX / CLOCK_NS_PER_US / 2;
        int64_t limit_ns = fits ? limit.tv_sec * CLOCK_NS_PER_S + limit.tv_usec * CLOCK_NS_PER_US : INT64_MAX;
        wait_for_selected(supervisor, process, call, limit_ns);
    }
}
#endif

/* --- reading, receiving, accepting --- */

/* How long a socket's own limit (SO_RCVTIMEO) lets it wait. */
static int64_t receive_limit_ns(int fd) {
    struct timeval limit = {0};
    socklen_t size = sizeof limit;
    if (getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &size) != 0) return INT64_MAX;
    int64_t limit_ns = limit.tv_sec * CLOCK_NS_PER_S + limit.tv_usec * CLOCK_NS_PER_US;
    return limit_ns > 0 ? limit_ns : INT64_MAX;
}

/* The kernel carries the call out when the descriptor is readable, which it is at once unless the other side has not
 * written yet. */
static void transfer(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call,
                     uint64_t flags) {
    struct held_call *held = held_call_add(supervisor, process, call, HELD_TRANSFER);
    if (!held_call_add_fd(supervisor, held, (int)call_argument(call, 0), POLLIN)) return;
    int fd = held->fds[0].fd;
    struct seccomp_notif same;
    if (poll(held->fds, 1, 0) > 0) {
        held->end = END_PASS;
        held_call_end(supervisor, held, &same);
    } else if (flags & MSG_DONTWAIT || fcntl(fd, F_GETFL) & O_NONBLOCK) {
        held_calls_drop(supervisor, NULL, (pid_t)call->pid);
        held_call_add_look(supervisor, process, call);
    } else {
        held->deadline_ns = call_deadline_ns(supervisor, receive_limit_ns(fd));
    }
}

static void on_read(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    transfer(supervisor, process, call, 0);
}

static void on_recvfrom(struct supervisor *supervisor, struct program_process *process,
                        const struct seccomp_notif *call) {
    transfer(supervisor, process, call, call_argument(call, 3));
}

static void on_recvmsg(struct supervisor *supervisor, struct program_process *process,
                       const struct seccomp_notif *call) {
    transfer(supervisor, process, call, call_argument(call, 2));
}

/* Its own limit of time is one of the machine's clock. */
static void on_recvmmsg(struct supervisor *supervisor, struct program_process *process,
                        const struct seccomp_notif *call) {
    if (call_argument(call, 4)) supervisor_give_up(supervisor, "the program receives with a limit of time (recvmmsg)");
    else transfer(supervisor, process, call, call_argument(call, 3));
}

/* --- signals as descriptors --- */

static void on_signalfd(struct supervisor *supervisor, struct program_process *process,
                        const struct seccomp_notif *call) {
    (void)process;
    supervisor->signal_descriptors = true;
    supervisor_pass(supervisor, call);
}

const struct supervised_call CALLS_WAIT[] = {
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, on_epoll_wait, CALL_ALWAYS, 0},
    {SYS_poll, on_poll, CALL_ALWAYS, 0},
    {SYS_select, on_select, CALL_ALWAYS, 0},
#endif
    {SYS_epoll_pwait, on_epoll_wait, CALL_ALWAYS, 0},
    {SYS_epoll_pwait2, on_epoll_pwait2, CALL_ALWAYS, 0},
    {SYS_ppoll, on_ppoll, CALL_ALWAYS, 0},
    {SYS_pselect6, on_pselect, CALL_ALWAYS, 0},
    {SYS_read, on_read, CALL_ALWAYS, 0},
    {SYS_readv, on_read, CALL_ALWAYS, 0},
    {SYS_recvfrom, on_recvfrom, CALL_ALWAYS, 0},
    {SYS_recvmsg, on_recvmsg, CALL_ALWAYS, 0},
    {SYS_recvmmsg, on_recvmmsg, CALL_ALWAYS, 0},
    {SYS_accept4, on_read, CALL_ALWAYS, 0},
#ifdef SYS_accept
    {SYS_accept, on_read, CALL_ALWAYS, 0},
#endif
    {SYS_io_uring_setup, call_refuse_unknown, CALL_ALWAYS, 0},
    {SYS_signalfd4, on_signalfd, CALL_ALWAYS, 0},
#ifdef SYS_signalfd
    {SYS_signalfd, on_signalfd, CALL_ALWAYS, 0},
#endif
    /* Limits of the machine's time. */
    {SYS_semtimedop, call_give_up, CALL_UNLESS_ZERO, 3},
    {SYS_mq_timedsend, call_give_up, CALL_UNLESS_ZERO, 4},
    {SYS_mq_timedreceive, call_give_up, CALL_UNLESS_ZERO, 4},
    {SYS_io_getevents, call_give_up, CALL_UNLESS_ZERO, 4},
    {0},
};
