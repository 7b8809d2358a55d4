/* A program that hosts a lock library (docs/adapters.md), run in virtual time by this process itself: its supervisor
 * (harness/supervisor) is a value here, and not a process of a trial. It runs only within hosted_run, until it is
 * quiet. */
#pragma once

#include "harness/scheduler/shared_page.h"
#include "harness/supervisor/supervisor.h"

enum { HOSTED_REASON = 240, STRANGER_TEXT = 200 };

struct hosted_program {
    struct supervisor *supervisor; /* owned; NULL: it does not run */
    int to, from;                  /* our ends of its standard input and output */
    char *output;                  /* owned: what it has written and no call has taken */
    size_t length, room, taken;
    bool stirred;               /* it was sent something, or can write again, since it ran */
    bool has_run;               /* since its owner took the flag down: it may have said something */
    char reason[HOSTED_REASON]; /* why it cannot be run any further; empty: it can */
};

/* Starts the program `path` without arguments. Its clocks are those of `host`, its random numbers come from `seed`, its
 * standard error goes to the file `log`. It has not run when this returns. False: with `reason`. */
bool hosted_start(struct hosted_program *program, const char *path, const struct shared_page *page,
                  const struct task_slot *host, uint64_t seed, const char *log);
/* Connections of the program to the port `from` of the loopback interface lead to the port `to`. */
void hosted_lead(struct hosted_program *program, uint16_t from, uint16_t to);
/* Kills it, if it runs, and frees what it has. */
void hosted_end(struct hosted_program *program);
/* From here on its random numbers come from another seed. */
void hosted_seed(struct hosted_program *program, uint64_t seed);

/* Runs it until it is quiet. False: it has ended, or cannot be supervised any further (`reason`). */
bool hosted_run(struct hosted_program *program);
/* After hosted_run was false: whether it has ended by itself; and its exit status, 128 and its number if a signal has
 * ended it. */
bool hosted_has_exited(const struct hosted_program *program);
int hosted_exit_status(const struct hosted_program *program);
/* Whether something has come for it that it has not seen. */
bool hosted_has_news(const struct hosted_program *program);
/* The stamp of the page's clock at which it goes on by itself; INT64_MAX: never. */
int64_t hosted_deadline_ns(const struct hosted_program *program);
/* Whether it sleeps for less than limit_ns: it is in the midst of something. */
bool hosted_naps(const struct hosted_program *program, int64_t limit_ns);
/* How late its waits and timers have ended since it was started, together. */
int64_t hosted_late_ns(const struct hosted_program *program);
/* "; it wanted to connect to 127.0.0.1:27017, ..." of a closed program that was refused a connection; or nothing. */
void hosted_stranger_describe(const struct hosted_program *program, char text[STRANGER_TEXT]);

/* Sends a line, to which this adds the line's end. False: it takes no more. */
bool hosted_send(struct hosted_program *program, const char *line);
/* The next line that it has written, without its end; it is the program's until the next call. Or NULL. */
char *hosted_line(struct hosted_program *program);
