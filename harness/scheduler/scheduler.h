/* The scheduler: the driver's side of the shared page. In virtual time it gives the turn to one task at a time, in an
 * order drawn from the trial's seed, and moves the clock to the next deadline when every task waits and nothing is in
 * flight. In real time it only waits.
 *
 * "Nothing is in flight" is proved, not guessed. A task waits for an ordinary reply while it has the turn. Before the
 * clock moves past a task that waits for a reply that may stay away (a blocking pop), a fence (fence.c) makes sure that
 * servers and proxy have passed on everything, and the task is asked to look at its socket.
 *
 * Tasks, servers and hosts of clients are numbered from 0; a host is named by its client's worker task. Where a
 * function says that it counts reasons, what several callers asked for ends when all of them have taken it back; it
 * returns the number of reasons that are left. */
#pragma once

#include "harness/scheduler/shared_page.h"

struct scheduler;

enum scheduler_result {
    SCHEDULER_DONE = 0,        /* the awaited tasks are parked */
    SCHEDULER_TIME = 1,        /* the clock has reached until_ns */
    SCHEDULER_QUIET = 2,       /* no task can go on and no deadline is left: a deadlock, or all wait for the driver */
    SCHEDULER_STUCK = 3,       /* a task kept the turn for real_limit_ms, or a fence failed (scheduler_unanswered) */
    SCHEDULER_INTERRUPTED = 4, /* a signal came */
    SCHEDULER_DIED = 5,        /* a client's process has ended: scheduler_dead says which */
    SCHEDULER_FAILED = 6,      /* a server's clock could not be written */
    SCHEDULER_LATE = 7,        /* the awaited tasks did not park within the trial's patience */
};

/* Opens the shared page at `path`. NULL with *error. The caller frees with scheduler_close. */
struct scheduler *scheduler_open(const char *path, struct history_error *error);
void scheduler_close(struct scheduler *scheduler);

/* --- the trial --- */

/* A descriptor that becomes readable when the caller's process has been signalled: otherwise a signal that arrives
 * between two waits would go unseen. It stays the caller's; a run drains it and returns INTERRUPTED. */
void scheduler_set_signal_fd(struct scheduler *scheduler, int fd);
/* Virtual time: how long a run without a bound may last; nothing else would end it while a watchdog renews for ever
 * what another client waits for. Without a call: for ever. */
void scheduler_set_patience(struct scheduler *scheduler, int64_t patience_ns);
/* The proxy that all links lead through, by the path of its control socket. False with *error. */
bool scheduler_set_proxy(struct scheduler *scheduler, const char *control_path, struct history_error *error);
/* Some traffic goes over TCP, where a packet can be on its way without either side knowing. */
void scheduler_set_tcp(struct scheduler *scheduler);
/* From now on replies may stay away. In virtual time a task then gives the turn back while it waits for one, and after
 * every turn everything in flight arrives before the next turn is given: the seed still decides the order of messages.
 */
void scheduler_set_unreliable(struct scheduler *scheduler);
int64_t scheduler_mono_ns(const struct scheduler *scheduler);
int64_t scheduler_wall_ns(const struct scheduler *scheduler);

/* --- servers --- */

/* Adds a server whose clock is the file at `clock_path` (NULL: the machine's clock), which is written at once, and
 * which speaks RESP on the unix socket at `socket_path` (NULL: see scheduler_set_server_process). Its number, or -1
 * with *error. */
int scheduler_add_server(struct scheduler *scheduler, const char *clock_path, const char *socket_path,
                         struct history_error *error);
/* The server does not speak RESP and is not asked: it has dealt with everything that reached it when the process `pid`
 * and its children are idle. 0: it does not run. Its socket_path was NULL. */
void scheduler_set_server_process(struct scheduler *scheduler, int server, int pid);
/* That process has many threads; `thread` looks at the trial's clock by itself: it has looked at every new
 * time before any task goes on. `address`, "host:port": how the proxy names the server when it says to whom it has
 * written, so that other servers are not asked for that. */
void scheduler_set_server_timer(struct scheduler *scheduler, int server, int thread, const char *address);
/* The number of replicas that follow the server, 0 when they are cut off. Before the clock moves while a task waits,
 * they must have acknowledged what the server has sent them, because a WAIT is in flight until then. */
void scheduler_set_server_replicas(struct scheduler *scheduler, int server, int replicas);
/* The server cannot answer, on purpose, and is not asked. Counts reasons. */
void scheduler_set_server_silent(struct scheduler *scheduler, int server, bool silent);
/* The server answers at once but runs nothing (-BUSY), on purpose. Counts reasons. */
void scheduler_set_server_busy(struct scheduler *scheduler, int server, bool busy);
/* Whether the server answers now; if it does, it stays connected for the fences to come. */
bool scheduler_server_answers(struct scheduler *scheduler, int server);
/* Whether the server is neither silent nor busy. */
bool scheduler_server_works(const struct scheduler *scheduler, int server);
/* From now on a server's wall clock is offset_ns ahead of the trial's and gains drift_ppm. False: its clock could not
 * be written, or is the machine's. */
bool scheduler_set_server_clock(struct scheduler *scheduler, int server, int64_t offset_ns, int64_t drift_ppm);
/* How far a server's clock is ahead now, and its drift. False: its clock is the machine's. */
bool scheduler_server_clock_error(const struct scheduler *scheduler, int server, int64_t *offset_ns,
                                  int64_t *drift_ppm);
/* What a server's wall clock should show; us since 1970. */
int64_t scheduler_server_wall_us(const struct scheduler *scheduler, int server);

/* --- hosts of clients --- */

/* The same as for a server. Never false. */
bool scheduler_set_host_clock(struct scheduler *scheduler, int task, int64_t offset_ns, int64_t drift_ppm);
bool scheduler_host_clock_error(const struct scheduler *scheduler, int task, int64_t *offset_ns, int64_t *drift_ppm);
/* What a host's wall clock shows, and how far its monotonic clock has come; ns. */
int64_t scheduler_host_wall_ns(const struct scheduler *scheduler, int task);
int64_t scheduler_host_mono_ns(const struct scheduler *scheduler, int task);
/* The host's monotonic clock stands still from true to false, while the trial's goes on. The caller keeps the process
 * stopped meanwhile (scheduler_set_process_stopped). Counts reasons. */
int scheduler_set_host_suspended(struct scheduler *scheduler, int task, bool suspended);
/* The trial's shared page, mapped until scheduler_close. */
struct shared_page *scheduler_page(const struct scheduler *scheduler);

/* --- tasks --- */

/* The eventfd on which tasks give the turn back; children inherit it. Owned by the scheduler. */
int scheduler_yield_fd(const struct scheduler *scheduler);
/* Takes a slot on the shared page. Its number, or -1 if all are taken. */
int scheduler_add_task(struct scheduler *scheduler);
/* Takes `count` neighbouring slots for the tasks of one process, which share one eventfd; in real time. The number of
 * the first, or -1 if there are not as many left. Of these the first one alone is watched (scheduler_watch). */
int scheduler_add_group(struct scheduler *scheduler, int count);
/* The eventfd of a task's turn; owned by the scheduler. */
int scheduler_turn_fd(const struct scheduler *scheduler, int task);
/* A process with this task is about to be started: no other task runs until this one has given a turn back. */
void scheduler_expect(struct scheduler *scheduler, int task);
/* Says which process a task lives in, once it is started. False with errno. */
bool scheduler_watch(struct scheduler *scheduler, int task, int pid);
/* The process has ended, as its parent knows: its tasks are GONE. */
void scheduler_forget_process(struct scheduler *scheduler, int pid);
/* Clears the slot of a task whose process has ended for the next process on the same host: its clocks stay. */
void scheduler_reuse_task(struct scheduler *scheduler, int task);

/* Gives a parked worker its next step. It begins with the next scheduler_run, in real time too, so that a checkpoint
 * can be armed before the worker has passed it. */
void scheduler_step(struct scheduler *scheduler, int task, const struct step *step);
/* Lets a task that is held at a checkpoint go on. */
void scheduler_continue(struct scheduler *scheduler, int task);
/* Holds a task at the n-th passage of a checkpoint (SHARED_PAGE_ANYWHERE: of any) from now on (1: the next one); 0
 * disarms. */
void scheduler_arm(struct scheduler *scheduler, int task, const char *checkpoint, uint32_t nth);
/* The task's workload ends after one more critical section, whatever its number and duration were to be. */
void scheduler_wind_down(struct scheduler *scheduler, int task);

/* A whole process was stopped, or may go on: its tasks get no turn meanwhile. Counts reasons. */
int scheduler_set_process_stopped(struct scheduler *scheduler, int pid, bool stopped);
/* A client's worker alone gets no turn: its watchdog goes on. In real time the worker stops at the next place where it
 * looks: when it has slept or waited, or at a checkpoint. Counts reasons. */
int scheduler_set_task_stopped(struct scheduler *scheduler, int task, bool stalled);
/* Stops the process of a task, a child of the caller, so that none of its records is half written: a caller may then
 * end it, or read the history to its end. True: it is stopped, which counts as no reason
 * (scheduler_set_process_stopped). False: it has ended, or was in the middle of a record every time for 20 seconds. */
bool scheduler_stop_between_records(struct scheduler *scheduler, int task);
/* Virtual time: returns when a process that had been stopped, and its children, have dealt with what had waited for
 * them. In real time at once. */
void scheduler_process_catch_up(const struct scheduler *scheduler, int pid);
/* Whether a task that was stalled stands still, and how many times it has gone on so far. */
bool scheduler_task_stands(const struct scheduler *scheduler, int task);
uint64_t scheduler_task_moves(const struct scheduler *scheduler, int task);

enum task_state scheduler_state(const struct scheduler *scheduler, int task);
const char *scheduler_held_at(const struct scheduler *scheduler, int task);
struct step_result scheduler_result_of(const struct scheduler *scheduler, int task);

/* --- running --- */

/* Runs the trial until every task of `awaited` (an array of `count` numbers), or the `first` of them, is parked, the
 * clock reaches until_ns (INT64_MAX: no bound), or one of the other results. With count 0 it runs until until_ns.
 * real_limit_ms bounds how long one task may keep the turn; in real time, the whole call. It only guards against
 * hanging (hang_limit.h). */
enum scheduler_result scheduler_run(struct scheduler *scheduler, const int *awaited, int count, bool first,
                                    int64_t until_ns, int real_limit_ms);
/* The process whose end the last run saw (SCHEDULER_DIED). */
int scheduler_dead(const struct scheduler *scheduler);
/* Returns when everything that is in flight has arrived, but for what a fault holds back. False: a server, or the
 * proxy, did not answer. */
bool scheduler_settle(struct scheduler *scheduler);
/* What did not answer, or did not become idle, when that last failed; "": it never has. */
const char *scheduler_unanswered(const struct scheduler *scheduler);
