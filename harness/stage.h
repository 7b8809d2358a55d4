/* The stage: one small file that every process of a trial maps, where the trial's clock stands and where every
 * *strand* - a thread of lock code: a client's worker or its watchdog - says what it is doing.
 *
 * In virtual time exactly one strand runs at any moment: it has the *turn*. A strand that sleeps, waits for its next
 * step, or stands at an armed checkpoint gives the turn back; the conductor (harness/conductor.h, in the driver) gives
 * it to the next one, or moves the clock when there is none. So the order of everything is decided by the trial's
 * seed, not by the machine. In real time strands run as they like and only steps and checkpoints pass through here.
 *
 * Who writes what: the strand writes its state while it runs, the conductor while it does not. The turn travels through
 * an eventfd per strand, the news that it came back through one eventfd for all ("yield"), so that a strand can wait
 * for its turn and for a socket at once. */
#ifndef LOCKSTORM_STAGE_H
#define LOCKSTORM_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/history.h"

enum strand_state {
    STRAND_ABSENT = 0,   /* nobody uses this place */
    STRAND_IDLE = 1,     /* a worker without a step to do, a watchdog that is not running */
    STRAND_READY = 2,    /* wants the turn */
    STRAND_RUNNING = 3,  /* has the turn */
    STRAND_SLEEPING = 4, /* until deadline_ns */
    STRAND_WAITING = 5,  /* for a server's answer that may never come, at most until deadline_ns */
    STRAND_PROBING = 6,  /* looks whether that answer is there: goes READY or back to WAITING */
    STRAND_HELD = 7,     /* at the checkpoint `held_at` */
    STRAND_GONE = 8,     /* its process has ended */
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
    STEP_IS_HELD = 11, /* asks the lock whether it is this client's */
    STEP_HOLD =
        10, /* acquire and release again and again, until the history is full: wait_ms, work_ms, turns, pace_us */
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
    int64_t pace_us;     /* hold: the n-th attempt is not made before n times this; 0: at once */
    int64_t token;       /* of whatever is granted, chosen by the application; 0: the lock's own */
};

struct step_result {
    uint32_t outcome; /* enum outcome */
    uint32_t turns;   /* critical sections completed */
    int64_t token;
    int64_t value;
    int64_t version;
    char error[128]; /* what the other side said, when it refused or failed */
};

enum { STAGE_NAME = 32, STAGE_STRANDS = 256, STAGE_VERSION = 7 };
#define STAGE_ANYWHERE "*" /* every checkpoint counts */

/* Why a strand gets no turn. */
enum strand_stop {
    STRAND_STOP_PROCESS = 1, /* its whole process stands still */
    STRAND_STOP_STALL = 2,   /* it alone does; in real time it sees to that itself */
};

struct strand_place {
    _Alignas(64) _Atomic uint32_t state;
    _Atomic uint32_t stopped;  /* enum strand_stop, or-ed, by the conductor */
    _Atomic uint32_t standing; /* it sleeps, waits or is parked, and cannot go on before it has looked at `stopped` */
    _Atomic uint64_t moves;    /* how often it went on after that */
    _Atomic uint32_t appends;  /* of a worker: how many records its process has begun and not finished */
    _Atomic int64_t deadline_ns;
    _Atomic uint32_t armed_countdown; /* hold at the n-th passage of armed_at; 0: not armed */
    int32_t pid;
    _Atomic uint32_t
        last_turn; /* its workload is done after one more turn that is granted; a new step begins without */
    _Atomic int64_t wall_offset_ns; /* how far this host's wall clock is off */
    _Atomic int64_t wall_drift_ppm; /* and how fast that grows, from wall_since_ns (trial's clock) on */
    _Atomic int64_t wall_since_ns;
    _Atomic int64_t suspended_ns;   /* how long this host's monotonic clock has stood still so far */
    _Atomic int64_t valid_until_ns; /* by this host's clock: until when the lock told its client to believe; 0: none */
    char armed_at[STAGE_NAME];      /* a checkpoint, or STAGE_ANYWHERE */
    char held_at[STAGE_NAME];
    struct step step;
    struct step_result result;
};

struct stage {
    uint32_t version;
    uint32_t time; /* enum history_time */
    uint64_t seed;
    int64_t wall_epoch_ns;   /* virtual time: the wall clock when the trial's clock stood at 0 */
    _Atomic int64_t mono_ns; /* virtual time: the trial's clock */
    /* Replies may stay away (a fault is, or was, on a link or a server): in virtual time a strand gives the turn back
     * while it waits for one. */
    _Atomic uint32_t unreliable;
    _Atomic int64_t proxy_deadline_ns; /* by the proxy: when it next has something to do; INT64_MAX: nothing */
    _Atomic uint64_t traffic;          /* by strands: grows with whatever a server may hear of */
    _Atomic uint64_t unawaited; /* ... and with that of it after which the turn can go on before a server heard */
    struct strand_place strands[STAGE_STRANDS];
};

/* Makes the file with an empty stage. */
bool stage_create(const char *path, enum history_time time, uint64_t seed, struct history_error *error);
/* Maps it; NULL with *error. Unmapped by stage_close. */
struct stage *stage_open(const char *path, struct history_error *error);
void stage_close(struct stage *stage);

/* The trial's time as a process without clock faults has it: virtual or real by the kind of the trial. */
int64_t stage_mono_ns(const struct stage *stage);
int64_t stage_wall_ns(const struct stage *stage);
/* The same clocks as the host has them on which the client with this worker lives: the monotonic one stood still while
 * the host was suspended, the wall clock may be off. NULL: a host without faults. */
int64_t stage_host_mono_ns(const struct stage *stage, const struct strand_place *host);
int64_t stage_host_wall_ns(const struct stage *stage, const struct strand_place *host);
/* What a clock has gained that has been drift_ppm too fast for so long. */
int64_t stage_drift_ns(int64_t duration_ns, int64_t drift_ppm);

#endif
