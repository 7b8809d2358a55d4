/* The calls of a program that are held, and what ends each of them. */
#pragma once

#include <poll.h>

#include "harness/supervisor/supervisor.h"

enum held_kind {
    HELD_SLEEP,    /* its deadline */
    HELD_FUTEX,    /* a wake of `word` */
    HELD_MUTEX,    /* its turn to have the mutex `word` */
    HELD_EPOLL,    /* an event of the epoll instance fds[0] */
    HELD_EVENTS,   /* one of the descriptors of an epoll instance, or a signal: the kernel then looks itself */
    HELD_POLL,     /* one of the descriptors */
    HELD_SELECT,   /* one of the descriptors */
    HELD_TRANSFER, /* fds[0]: the kernel then carries out the read, or the like, without waiting */
    HELD_CHILD,    /* the end of a child process */
    HELD_SIGNAL,   /* a signal, which the kernel then delivers */
    HELD_TURN,     /* nothing: its thread's turn comes later */
    HELD_LOOK,     /* its deadline, whatever is there; the kernel then carries it out */
};

/* How a call ends that is not held any more. */
enum held_end {
    END_NOT_YET,
    END_ANSWER, /* with `value` */
    END_REFUSE, /* with the errno `value` */
    END_PASS,   /* the kernel carries it out */
    END_HANDLE, /* it is handled now, for the first time */
};

struct held_call {
    struct held_call *next;
    struct program_call call;
    enum held_kind kind;
    enum held_end end; /* not NOT_YET: the thread is ready */
    int64_t value;
    uint64_t order;
    int64_t began_ns;    /* by the program's monotonic clock */
    int64_t deadline_ns; /* by the program's clock; INT64_MAX: none */
    bool by_wall_clock;  /* the deadline is one of CLOCK_REALTIME */
    struct pollfd *fds;  /* duplicates of the program's descriptors, with the awaited events */
    int fd_count;
    uint64_t signals;      /* which end it too, by descriptors of signals; bit n - 1: signal n */
    uint64_t signals_seen; /* the supervisor's count of signals, and 1, when it last looked for these; 0: never */
    uint64_t word;         /* of a futex */
    uint32_t expected, bits;
};

/* Holds a call. The result is the supervisor's, until the call ends; the caller fills in what its kind needs. */
struct held_call *held_call_add(const struct program_call *call, enum held_kind kind);
/* Holds a call that only looks whether something is there, until the threads that are ready have gone on; the kernel
 * carries it out then. A program that does nothing else waits actively: the 200th look at the same time takes a
 * millisecond, so that its partners get their turns and time goes on. */
void held_call_add_look(const struct program_call *call);
/* A wait whose deadline is over when it begins is such a look, too; BEAM's schedulers wait for futexes so. */
void held_call_look_if_over(struct held_call *held);
/* Holds a call that has not been handled until its thread has its turn; the order is that of becoming ready. */
void held_call_add_turn(const struct program_call *call, uint64_t order);
/* Adds a duplicate of a descriptor; false, and the call is refused with EBADF, when it is not open. */
bool held_call_add_fd(struct held_call *held, int fd, short events);
/* The thread is ready; its call ends so when it gets its turn. */
void held_call_ready(struct held_call *held, enum held_end end, int64_t value);
/* Tells a program that sleeps, selects or polls with a limit how much of it was left, where the kernel does. */
void held_call_write_left(const struct held_call *held);
/* The held call of this thread that is not ready; or NULL. */
struct held_call *held_call_of(const struct supervisor *supervisor, pid_t tid);
/* Drops the held calls of a thread, which has ended or makes another call; of a process: process, tid 0. */
void held_calls_drop(struct supervisor *supervisor, const struct program_process *process, pid_t tid);

/* The thread that became ready first; NULL: none is. */
struct held_call *held_calls_next_ready(const struct supervisor *supervisor);
/* Ends the call of a ready thread, which runs from now on. END_HANDLE is left to the caller, who gets the call in
 * *call; true. */
bool held_call_end(struct held_call *held, struct program_call *call);

/* Whether what a held call waits for on its descriptors is there. */
bool held_calls_any_readable(const struct supervisor *supervisor);
/* Makes the first such thread ready; false if no thread waits. */
bool held_calls_deliver(struct supervisor *supervisor);
/* The program's monotonic clock when its deadline next ends a call; INT64_MAX: none. */
int64_t held_calls_next_deadline_ns(const struct supervisor *supervisor);
/* Whether a thread waits with a limit that was less than limit_ns when it began. */
bool held_calls_any_shorter(const struct supervisor *supervisor, int64_t limit_ns);
/* Makes those threads ready whose calls their deadlines end by now, in their order. True: there were some. */
bool held_calls_expire(struct supervisor *supervisor);

/* Receives a call that comes within limit_ms, without its process. False: none has, or its thread was killed. */
bool held_calls_receive(struct supervisor *supervisor, struct program_call *call, int limit_ms);
/* Receives a call that has come, and holds it for its thread's turn. The process that made it; 0: none has come. */
pid_t held_calls_hold_next(struct supervisor *supervisor);
