/* What the files of the scheduler share: scheduler.h declares what each of them does with it. */
#pragma once

#include <poll.h>

#include "harness/scheduler/random.h"
#include "harness/scheduler/scheduler.h"

enum { SERVERS_MAX = 32 }; /* in one trial */
enum { STOPPED_PROCESSES_MAX = SHARED_PAGE_TASKS + SERVERS_MAX };

struct driven_task {
    int turn_fd;
    int pid_fd;              /* -1: not watched, or its end was seen */
    bool is_group;           /* its process hosts many tasks, which share the descriptors of the first one */
    int stalled;             /* number of reasons */
    int suspended;           /* of its host's monotonic clock: number of reasons */
    int64_t suspended_at_ns; /* by the trial's clock; only while there is a reason */
};

struct server_clock {
    int fd;                  /* -1: the machine's clock */
    struct clock_page *page; /* the same file, mapped */
    int64_t offset_ns;
    int64_t drift_ppm, since_ns; /* the drift counts from this stamp of the trial's clock on */
};

struct scheduler {
    struct shared_page *page;
    struct random random;
    struct fence *fence;
    int servers;
    struct server_clock server_clocks[SERVERS_MAX];
    int yield_fd;
    int signal_fd; /* -1: none */
    int64_t patience_ns;
    int tasks;
    struct driven_task *driven; /* by task */
    struct {
        int pid, reasons; /* 0, 0: free */
    } stopped[STOPPED_PROCESSES_MAX];
    /* Scratch, by their number: tasks that want the turn; what is polled, and for which task. */
    int *ready, *polled_task;
    struct pollfd *polled;
    int dead;
};

/* A state that several faults may ask for at once lasts until the last of them has taken its request back.
 * Decision 0026. */
/* Counts one reason more, or one less but never below 0. Returns the number of reasons that are left. */
static inline int reasons_count(int *reasons, bool more) {
    if (more) ++*reasons;
    else if (*reasons > 0) --*reasons;
    return *reasons;
}

/* --- server_clocks.c: the wall clocks of a trial's servers --- */

/* The clock of the server that is the next one: the file at `path`, which is written at once; NULL: the machine's
 * clock. False with *error. */
bool server_clocks_add(struct scheduler *scheduler, const char *path, struct history_error *error);
/* Writes the trial's present time into every file. False: one could not be written. */
bool server_clocks_write(const struct scheduler *scheduler);
void server_clocks_close(struct scheduler *scheduler);
/* In virtual time, the timers of servers' processes (clock_page.h). When the next one is due; INT64_MAX: none is set.
 */
int64_t server_clocks_next_alarm_ns(const struct scheduler *scheduler);
/* Sends SIGALRM to those whose timer is due. Returns their number. */
int server_clocks_ring(const struct scheduler *scheduler);
/* None of this server's processes is left. */
void server_clocks_forget_alarms(const struct scheduler *scheduler, int server);

/* --- fence.c: the proof that nothing is in flight between the processes of a trial in virtual time --- */

/* `page` stays the caller's and outlives the fence. The caller frees with fence_close. */
struct fence *fence_open(const struct shared_page *page);
void fence_close(struct fence *fence);

/* Adds a server that speaks RESP on the unix socket at `socket_path`; NULL: see scheduler_set_server_process. At most
 * SERVERS_MAX, which the caller sees to. */
void fence_add_server(struct fence *fence, const char *socket_path);

/* Something may be in flight, so the next fence_settle does not rely on the last one. */
void fence_mark_unsettled(struct fence *fence);
/* The server's clock has moved, so it may have something to write. */
void fence_mark_clock(struct fence *fence, int server);
/* The driver may have released something, or have talked to any server: all of it may be in flight. */
void fence_mark_all(struct fence *fence);
/* Whether some server acts by the trial's clock without being asked (scheduler_set_server_timer). */
bool fence_has_timer(const struct fence *fence);

/* Returns when nothing is in flight any more, but for what a fault holds back. Does nothing when no task has sent
 * anything since the last time and nothing was marked. False: scheduler_unanswered says which part did not answer. */
bool fence_settle(struct fence *fence);
/* The same before a turn is given, and only where it is needed: when the last turn sent something without waiting for
 * the answer, or when replies may stay away. Otherwise a later message could overtake it: a server reads its
 * connections in an order of its own. */
bool fence_settle_before_turn(struct fence *fence);
