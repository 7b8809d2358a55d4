/* The shared page: one small file that every process of a trial maps. It holds the trial's clock and a slot for every
 * *task*, a thread of lock code: a client's worker or its watchdog.
 *
 * In virtual time exactly one task runs at any moment: it has the *turn*. A task that sleeps, waits for its next step,
 * or is held at an armed checkpoint gives the turn back; the scheduler (harness/scheduler/scheduler.h, in the driver)
 * gives it to the next one, or moves the clock when no task is ready. So the trial's seed decides the order of
 * everything, not the machine. In real time tasks run freely, and the page carries only steps and checkpoints.
 *
 * A task writes its state while it runs, the scheduler writes it while the task does not run. An eventfd per task says
 * that it has the turn; one eventfd for all tasks ("yield") says that a task has given it back. So a task can wait for
 * its turn and for a socket at once. Decision 0008. */
#pragma once

#include <stdatomic.h>

#include "harness/history/history.h"

enum task_state {
    TASK_ABSENT = 0,   /* no task uses this slot */
    TASK_IDLE = 1,     /* a worker without a step to do, a watchdog that is not running */
    TASK_READY = 2,    /* wants the turn */
    TASK_RUNNING = 3,  /* has the turn */
    TASK_SLEEPING = 4, /* until deadline_ns */
    TASK_WAITING = 5,  /* for a server's answer that may never come; at most until deadline_ns */
    TASK_PROBING = 6,  /* checks whether that answer has come: READY or WAITING follows */
    TASK_HELD = 7,     /* at the checkpoint `held_at` */
    TASK_GONE = 8,     /* its process has ended */
};

/* What a driver can ask of a client's worker. */
enum step_kind {
    STEP_NONE = 0,
    STEP_ACQUIRE = 1, /* wait_ms */
    STEP_RELEASE = 2,
    STEP_RENEW = 3,
    STEP_READ = 4,     /* object */
    STEP_WRITE = 5,    /* object, value: based on the version last read, blind if none was read under this grant */
    STEP_ADD = 6,      /* object, value: the store adds (counter) or inserts (set) */
    STEP_SLEEP = 7,    /* work_ms */
    STEP_WORKLOAD = 8, /* read-modify-write under the lock: all fields */
    STEP_EXIT = 9,
    STEP_HOLD = 10,    /* acquires and releases until the history is full: wait_ms, work_ms, turns, pace_us */
    STEP_IS_HELD = 11, /* asks the lock whether this client holds it */
};

/* What a workload draws for each client, and for each of its turns. */
enum step_varied {
    STEP_VARIES_NOTHING = 0,
    STEP_VARIES_WORK = 1,     /* how long it works, and how long it pauses then */
    STEP_VARIES_PATIENCE = 2, /* how long it waits for the lock, up to wait_ms, which its last turn does */
    STEP_VARIES_RENEWAL = 4,  /* whether it renews in the middle of its work */
    STEP_VARIES_REENTRY = 8,  /* whether it enters the lock again there */
};

struct step {
    uint32_t kind;
    uint32_t object;     /* enum history_object */
    int64_t wait_ms;     /* for the lock; -1: for ever */
    int64_t value;       /* to write; in a workload, what each turn adds */
    int64_t work_ms;     /* in the critical section, between read and write */
    int64_t think_ms;    /* mean pause between critical sections, drawn from [0, 2 * think_ms] */
    int64_t duration_ms; /* workload: stop starting new turns after this; 0: no limit */
    int64_t turns;       /* workload, hold: stop after this many; 0: no limit */
    int64_t pace_us;     /* hold: the n-th attempt starts no earlier than n times this; 0: at once */
    int64_t token;       /* of the grant, chosen by the application; 0: the lock chooses */
    int64_t lease_ms;    /* workload: what is drawn is in proportion to it */
    uint32_t varied;     /* workload: of enum step_varied */
    uint32_t renews;     /* workload: 1: a watchdog renews the lease, so work may be longer */
};

struct step_result {
    uint32_t outcome; /* enum outcome */
    uint32_t turns;   /* critical sections completed */
    int64_t token;
    int64_t value;
    int64_t version;
    char error[128]; /* the other side's answer, when it refused or failed */
};

enum { SHARED_PAGE_NAME = 32, SHARED_PAGE_TASKS = 256, SHARED_PAGE_TASKS_MOST = 1 << 16, SHARED_PAGE_VERSION = 9 };
#define SHARED_PAGE_ANYWHERE "*" /* stands for every checkpoint */

/* Virtual time: what CLOCK_MONOTONIC shows to a program under a supervisor when the trial's clock stands at 0. Runtimes
 * take 0 for a broken clock. */
#define SHARED_PAGE_UPTIME_NS INT64_C(1000000000000)

/* Why a task gets no turn. */
enum task_stop {
    TASK_STOP_PROCESS = 1, /* its whole process is stopped */
    TASK_STOP_STALL = 2,   /* it alone is stalled; in real time the task itself obeys this flag */
};

struct task_slot {
    _Alignas(64) _Atomic uint32_t state;
    _Atomic uint32_t stopped;  /* flags of enum task_stop, set by the scheduler */
    _Atomic uint32_t standing; /* it sleeps, waits or is parked, and reads `stopped` before it goes on */
    _Atomic uint64_t moves;    /* number of times that it has gone on after standing */
    _Atomic uint32_t appends;  /* of a worker: number of records that its process has begun and not finished */
    _Atomic int64_t deadline_ns;
    _Atomic uint32_t armed_countdown; /* hold at the n-th passage of armed_at; 0: not armed */
    int32_t pid;
    _Atomic uint32_t last_turn;     /* its workload ends after one more critical section; a new step clears this */
    _Atomic int64_t wall_offset_ns; /* how far this host's wall clock is ahead */
    _Atomic int64_t wall_drift_ppm; /* and how fast that grows, from wall_since_ns (trial's clock) on */
    _Atomic int64_t wall_since_ns;
    _Atomic int64_t suspended_ns; /* how long this host's monotonic clock has stood still so far */
    /* By this host's clock: the validity that the lock last announced. Below 0: the grant has none; 0: no grant. */
    _Atomic int64_t valid_until_ns;
    char armed_at[SHARED_PAGE_NAME]; /* a checkpoint, or SHARED_PAGE_ANYWHERE */
    char held_at[SHARED_PAGE_NAME];
    struct step step;
    struct step_result result;
};

struct shared_page {
    uint32_t version;
    uint32_t time; /* enum history_time */
    uint64_t seed;
    int64_t wall_epoch_ns;   /* virtual time: the wall clock when the trial's clock stood at 0 */
    _Atomic int64_t mono_ns; /* virtual time: the trial's clock */
    /* Replies may stay away, because a fault is, or was, on a link or a server: in virtual time a task gives the turn
     * back while it waits for one. */
    _Atomic uint32_t unreliable;
    uint32_t task_count;               /* how many slots the file has */
    _Atomic int64_t proxy_deadline_ns; /* written by the proxy: when it has to act next; INT64_MAX: never */
    _Atomic uint64_t traffic;          /* written by tasks: grows with everything that a server may receive */
    _Atomic uint64_t unawaited; /* grows with the part of it after which a turn can end before the server received it */
    struct task_slot tasks[SHARED_PAGE_TASKS]; /* more follow in a file that has more */
};

/* Creates the file with an empty page for `tasks` tasks, or SHARED_PAGE_TASKS if that is more; SHARED_PAGE_TASKS_MOST
 * at most. False with *error. */
bool shared_page_create(const char *path, enum history_time time, uint64_t seed, int tasks,
                        struct history_error *error);
/* Maps it; NULL with *error. Unmapped by shared_page_close. */
struct shared_page *shared_page_open(const char *path, struct history_error *error);
void shared_page_close(struct shared_page *page);

static inline bool shared_page_is_virtual(const struct shared_page *page) {
    return page->time == HISTORY_TIME_VIRTUAL;
}

/* The trial's monotonic and wall clock without clock faults: virtual or real by the kind of the trial; ns. */
int64_t shared_page_mono_ns(const struct shared_page *page);
int64_t shared_page_wall_ns(const struct shared_page *page);
/* The same clocks as the host of a client shows them; `host` is the slot of the client's worker, NULL a host without
 * faults. The monotonic clock stood still while the host was suspended, the wall clock may be off. */
int64_t shared_page_host_mono_ns(const struct shared_page *page, const struct task_slot *host);
int64_t shared_page_host_wall_ns(const struct shared_page *page, const struct task_slot *host);
/* The stamps of a record: the trial's clock, and the host's wall clock at the same moment. */
void shared_page_stamp(const struct shared_page *page, const struct task_slot *host, int64_t *mono_ns,
                       int64_t *wall_ns);
/* How long that host's monotonic clock has stood still so far, and which stamp of the trial's clock a stamp of that
 * clock is, unless the host is suspended before it; INT64_MAX stays. */
int64_t shared_page_suspended_ns(const struct task_slot *host);
int64_t shared_page_trial_ns(const struct task_slot *host, int64_t host_ns);
/* What a clock that is drift_ppm too fast gains within a duration. */
int64_t shared_page_drift_ns(int64_t duration_ns, int64_t drift_ppm);
