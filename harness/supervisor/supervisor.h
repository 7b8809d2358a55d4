/* The supervisor: runs an unmodified program, whatever language it is written in, under the clock of a trial in virtual
 * time (docs/virtual-time.md).
 *
 * The kernel hands over to it the program's calls that wait or tell the time (seccomp user notification). A call that
 * waits is *held*: the thread sleeps in the kernel until the supervisor answers, because the awaited has come, or the
 * program's clock has reached the deadline. The program never waits by the machine's clock.
 *
 * One thread of the program runs at a time. A thread that another one wakes is *ready* and gets its turn when nobody
 * runs, in the order in which they became ready; a new thread takes its place where it was made. The program is *quiet*
 * when all its threads are held and none is ready. So the same input at the same times makes it do the same.
 *
 * The calls come from a program that runs beside this one and may be wrong in every way: what is read from its memory
 * is copied once, and checked before it is used. */
#pragma once

#include <stdio.h>

#include "harness/scheduler/random.h"
#include "harness/supervisor/program.h"
#include "harness/supervisor/program_clock.h"

enum {
    SUPERVISOR_BIRTHS = 64,
    SUPERVISOR_EXITS = 256,
    SUPERVISOR_REASON = 160,
    SUPERVISOR_ROUTES = 16,
    SUPERVISOR_LISTENS = 32
};

struct held_call;
struct program_timer;

struct ended_thread {
    pid_t pid, tid;
};

/* Connections to a port of the loopback interface lead to another one. So a program finds a server at an address that
 * is the same in every run, and the same as another program's, although each has its own way to it. */
struct supervisor_route {
    uint16_t from, to;
};

struct supervisor {
    int listener;       /* where the kernel hands over calls */
    pid_t root;         /* the program's first process, a child of the supervisor */
    const int *streams; /* that the root gets as its three standard ones; NULL: those of this process */
    int status;         /* of the root, once it has ended, as waitpid gives it */
    bool root_ended;
    bool ends_with_root; /* what the program has started and left running is then ended, too */
    bool must_rest;      /* it is given up if it goes on and on without waiting (turns.c); else its owner ends it */
    struct program_clock clock;
    struct random random;
    struct program program;
    struct held_call *held;             /* in the order in which they were held */
    uint64_t next_order;                /* of becoming ready, or being held */
    uint64_t births[SUPERVISOR_BIRTHS]; /* orders of threads that were made and have not made a call */
    int birth_count;
    struct ended_thread exits[SUPERVISOR_EXITS]; /* threads that end: the kernel changes words of memory for them */
    int exit_count;
    int64_t looked_ns; /* the program's clock when it last looked whether something is there, without waiting */
    unsigned looks;    /* how often it has looked since the clock has shown that */
    struct program_timer *timers;
    int64_t late_ns; /* how late its waits and timers have ended, together */
    struct supervisor_route routes[SUPERVISOR_ROUTES];
    int route_count;
    /* Its connections lead only where a route does, or where it listens itself: others are refused. A server of
     * somebody else lives by another clock, and may keep data that nobody wants changed. */
    bool is_closed;
    uint16_t listens[SUPERVISOR_LISTENS]; /* ports at which the program listens, while it is closed */
    int listen_count;
    char stranger[SUPERVISOR_REASON]; /* the first address that it was refused; empty: none */
    int signal_fd;                    /* SIGCHLD, as a descriptor */
    bool signal_descriptors;          /* the program has made some (signalfd) */
    uint64_t signals;                 /* number of signals that have been sent to its processes, as far as it is seen */
    FILE *trace;                      /* a line per call; NULL: none */
    uint64_t calls;                   /* number of calls handed over so far */
    uint64_t spins; /* number of times that a thread computed for so long that it may have been waiting */
    char reason[SUPERVISOR_REASON]; /* why the program cannot be supervised any further; empty: it can */
};

/* Writes down why the program cannot be supervised; the first reason stays. */
__attribute__((format(printf, 2, 3))) void supervisor_give_up(struct supervisor *supervisor, const char *format, ...);

/* A call of the program that the kernel has handed over. */
struct program_call {
    struct supervisor *supervisor;
    struct program_process *process; /* of the thread that makes it */
    pid_t tid;
    int number;
    uint64_t arguments[6];
    uint64_t id; /* by which the kernel knows it */
};

void supervisor_answer(const struct program_call *call, int64_t value);
/* The call fails with this errno. */
void supervisor_refuse(const struct program_call *call, int error);
/* The kernel carries the call out as the program asked for it. */
void supervisor_pass(const struct program_call *call);

/* Takes the signals that have come from the descriptor. */
void supervisor_drain_signals(const struct supervisor *supervisor);
/* Writes the program's clocks into the words that its vDSO reads. */
void supervisor_publish_clock(struct supervisor *supervisor);
void supervisor_publish_clock_to(struct supervisor *supervisor, const struct program_process *process);
