/* A fault: something that really happens to a lock, done on purpose. A `const struct fault`, mostly one C file each.
 *
 * inject does it, prove checks from the outside whether it is in effect (process state, a server's own replies, a
 * count) and heal undoes it; healing twice is harmless. A fault knows processes, servers and the proxy, never a lock. A
 * fault that cannot be proved makes the trial inconclusive, so prove always looks and never answers from memory.
 *
 * A fault has no static variables: what heal has to know stands in the target's `state`. So one fault can be in effect
 * on several targets at once. To add one see faults/README.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/names/fault_rows.h"

enum { FAULT_STATE = 512 };

struct fault;
struct scheduler;

/* What a fault may ask of the program that drives the trial. No function is NULL. Those without a scheduler, and those
 * marked "in Python", call Python back in the thread that has called the fault; the others are the scheduler's. */
struct fault_driver {
    struct scheduler *scheduler;
    bool virtual_time;
    /* The whole process is stopped, or may continue: its tasks get no turn meanwhile. Returns how many faults still
     * have it stopped. */
    int (*process_stopped)(struct scheduler *, int pid, bool stopped);
    /* Returns when a process that continues has dealt with what had waited for it; in real time at once. */
    void (*process_catch_up)(const struct scheduler *, int pid);
    /* Stops a client's process between two records; false: it does not reach such a place. */
    bool (*stop_between_records)(struct scheduler *, int task);
    /* In Python. The process has ended on purpose. */
    void (*process_ended)(struct scheduler *, int pid);
    /* A client's worker alone is stalled, or may continue: its watchdog runs on. Returns as process_stopped does. */
    int (*task_stopped)(struct scheduler *, int task, bool stopped);
    /* Whether a stalled task does stand still by now, and how many turns it has taken so far. */
    bool (*task_stands)(const struct scheduler *, int task);
    uint64_t (*task_moves)(const struct scheduler *, int task);
    /* The server cannot answer, or can again: the scheduler does not wait for it meanwhile. */
    void (*server_silent)(struct scheduler *, int server, bool silent);
    /* Whether the server answers the scheduler now. Its connection is kept from then on, so it needs no new one later.
     */
    bool (*server_answers)(struct scheduler *, int server);
    /* The server answers at once, but runs no command. */
    void (*server_busy)(struct scheduler *, int server, bool busy);
    bool (*server_works)(const struct scheduler *, int server); /* it is neither silent nor busy */
    /* Waits until everything in flight has arrived: a connection that was closed looks closed at its other end. */
    bool (*settle)(struct scheduler *);
    /* Sets how many replicas acknowledge the server's writes. */
    void (*server_replicas)(struct scheduler *, int server, int replicas);
    /* From now on the server's wall clock is offset_ns ahead of the trial's and gains drift_ppm. False: the server has
     * no clock of its own. */
    bool (*server_clock)(struct scheduler *, int server, int64_t offset_ns, int64_t drift_ppm);
    int64_t (*server_wall_us)(const struct scheduler *, int server); /* what its clock should show */
    /* How far that clock is ahead now, and how fast this grows. */
    bool (*server_clock_error)(const struct scheduler *, int server, int64_t *offset_ns, int64_t *drift_ppm);
    /* The same for the wall clock of the client that has this task. */
    bool (*host_clock)(struct scheduler *, int task, int64_t offset_ns, int64_t drift_ppm);
    bool (*host_clock_error)(const struct scheduler *, int task, int64_t *offset_ns, int64_t *drift_ppm);
    int64_t (*host_wall_ns)(const struct scheduler *, int task); /* the wall clock that the client reads */
    int64_t (*host_mono_ns)(const struct scheduler *, int task); /* its monotonic clock */
    /* In Python. The monotonic clock of the client that has this task stops while time passes, or runs again.
     * Returns how many faults still have it stopped. */
    int (*host_suspended)(struct scheduler *, int task, bool suspended);
    int64_t (*mono_ns)(const struct scheduler *); /* the trial's clock */
    int64_t (*wall_ns)(const struct scheduler *); /* what a correct wall clock shows */
    /* From here on replies may stay away: a task gives up its turn while it waits for one. */
    void (*unreliable)(struct scheduler *);
    /* Starts the server again, at the same address with what is in its directory; true when it answers. */
    bool (*server_restart)(int server);
    /* The replica does not get its master's writes any more: no acknowledgement of it is waited for. */
    void (*replica_lost)(int server);
    /* Clients that were led to one server are led to another from now on. False: no client uses it. */
    bool (*clients_lead)(int from, int to);
    /* The server follows that master, and so do the server's replicas; true when they have acknowledged a write. Where
     * sentinels or a cluster arrange that, it is waited for. */
    bool (*server_follow)(int server, int master);
    /* Starts a client that has ended again, under another name; true when it has opened its lock. */
    bool (*client_restart)(int task);
    /* Runs a SQL statement whose result is a number; INT64_MIN: there was no answer. */
    int64_t (*server_query)(int server, const char *statement);
    /* What the clock of a server shows that does not speak RESP; INT64_MIN: there was no answer. */
    int64_t (*server_time_us)(int server);
};

/* An option as it was given. */
struct fault_option {
    const char *name, *value;
};

/* What a fault is done to. Strings stay the caller's; what a target does not have is 0, -1 (server, task) or NULL. */
struct fault_target {
    const struct fault *fault;        /* the fault that is done */
    const char *name;                 /* "client-1", "redis-2" */
    int pid;                          /* of the process */
    int server;                       /* its number at the scheduler */
    int task;                         /* the client's worker, its number at the scheduler; the watchdog's is the next */
    bool shares_process;              /* other clients live in the client's process */
    const char *service;              /* kind of server: "postgres", "etcd", "zookeeper"; NULL: it speaks RESP */
    int64_t clock_step_us;            /* of a server that has a service: the resolution of the time it reports */
    const char *socket;               /* the unix socket on which the server listens; of a client, its first node's */
    const char *directory;            /* the server's data */
    const char *proxy;                /* the proxy's control socket */
    const char *links;                /* a pattern of the proxy's links that are concerned: "client-1>redis-*" */
    const char *probe;                /* a key that the server may hold and no client uses; NULL: any will do */
    const struct fault_target *other; /* a list of servers that take part, linked by `other`: a failover's replicas */
    struct fault_target *next;        /* of "clients": the next target, each with a state of its own */
    const struct fault_option *options;
    size_t option_count;
    const struct fault_driver *driver;
    char state[FAULT_STATE]; /* the fault's own, zero before inject; aligned for any type */
};

/* A sentence: what was seen, or why it failed. */
struct fault_report {
    char text[256];
};

/* When prove can see something. */
enum fault_moment {
    FAULT_AT_ONCE = 0,     /* as soon as it is injected */
    FAULT_BEFORE_HEAL = 1, /* at the end of its duration: a message had to come by */
    FAULT_AFTER_HEAL = 2,  /* only after it is healed: a server had to come back */
};

enum fault_time { FAULT_VIRTUAL = 1, FAULT_REAL = 2 };

struct rule_fault;

/* An option that a fault understands. */
struct fault_option_type {
    const char *name;
    const char *default_value; /* NULL: the option must be given */
    const char *meaning;       /* with the unit */
};

/* clang-format off */
#define FAULT_OPTIONS(...) ((const struct fault_option_type[]){__VA_ARGS__, {0}})
/* clang-format on */

struct fault {
    const struct fault_row *row; /* its name, and what all worlds say of it */
    const char *explanation;
    const char *target;                      /* "client", "server", "link" or "clients"; "client or server" */
    const struct fault_option_type *options; /* ends with a name of NULL; NULL: none */
    enum fault_moment moment;
    const struct rule_fault *rule; /* of a fault that is one rule at the proxy (faults/network/rule_faults.c) */
    unsigned times;                /* enum fault_time, or-ed: in which kinds of time it can bite */
    /* Establishes what must hold some time before inject; inject does it when it was not called. heal undoes it. NULL:
     * nothing has to. */
    bool (*prepare)(struct fault_target *target, struct fault_report *report);
    bool (*inject)(struct fault_target *target, struct fault_report *report);
    bool (*prove)(struct fault_target *target, struct fault_report *report);
    bool (*heal)(struct fault_target *target, struct fault_report *report); /* NULL: clients help themselves */
};

/* All faults, sorted by name; ends with NULL. */
extern const struct fault *const FAULT_TABLE[];

/* The fault of a trial with this name, or with this name in files of before. NULL: there is no such fault. */
const struct fault *fault_find(const char *name);

/* False with a sentence when the target has an option that the fault does not know, or lacks one that must be given. */
bool fault_check_options(const struct fault *fault, const struct fault_target *target, struct fault_report *report);

/* The value of an option of the target's fault, its default when it was not given. */
const char *fault_option_text(const struct fault_target *target, const char *name);
/* The option as a number; false with a sentence when it is not a number, or outside [low, high]. */
bool fault_option_number(const struct fault_target *target, const char *name, int64_t low, int64_t high, int64_t *value,
                         struct fault_report *report);
/* The option as one of several words: *choice is its index. `choices` ends with NULL. False with a sentence for
 * another word. */
int fault_option_choice(const struct fault_target *target, const char *name, const char *const *choices,
                        struct fault_report *report);
#define FAULT_CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Writes the report and returns false, for a `return fault_fail(...)`. */
bool fault_fail(struct fault_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
