/* The timers of a program: of timerfd, of setitimer and alarm, of timer_create. */
#pragma once

#include "harness/supervisor/calls.h"

enum timer_kind { TIMER_DESCRIPTOR, TIMER_INTERVAL, TIMER_POSIX };

struct program_timer {
    struct program_timer *next;
    struct program_process *process;
    pid_t pid; /* of the process: its place may be another's later */
    enum timer_kind kind;
    int number;    /* of the descriptor, or the timer's id */
    int duplicate; /* of a descriptor: ours */
    clockid_t clock;
    int64_t deadline_ns; /* by `clock`; INT64_MAX: it is not armed */
    int64_t every_ns;    /* 0: once */
    uint64_t order;      /* of being armed */
    int signal;          /* 0: none */
    pid_t signal_tid;    /* 0: to the process */
    uint64_t signal_value;
};

/* The program's monotonic clock at the next expiry; INT64_MAX: none. */
int64_t timers_next_deadline_ns(const struct supervisor *supervisor);
/* Lets the timers expire whose time has come. True: there were some. */
bool timers_expire(struct supervisor *supervisor);
void timers_free(struct supervisor *supervisor);
