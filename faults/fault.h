/* A fault: something that really happens to a lock, done on purpose. One C file each, a struct fault.
 *
 * inject does it, prove looks whether it is in effect (from the outside: process state, a server's own words, a count)
 * and heal undoes it; healing twice is harmless. A fault knows processes, servers and the proxy, never a lock. A fault
 * that cannot prove itself makes the trial inconclusive, so prove never answers from memory. Adding one: copy
 * pause_client.c and add a line to table.c.
 *
 * A fault keeps nothing in static variables: what heal has to know stands in the target's `state`. So one fault can be
 * in effect on several targets at once. */
#ifndef LOCKSTORM_FAULTS_FAULT_H
#define LOCKSTORM_FAULTS_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAULT_STATE = 512 };

struct conductor;

/* What a fault may ask of the trial around it. A function may be NULL: then this trial cannot do that. */
struct fault_means {
    struct conductor *conductor;
    bool virtual_time;
    /* The whole process stands still, or may go on: its strands get no turn meanwhile. Several faults may have stopped
     * it: the number of those that are left. */
    int (*process_stopped)(struct conductor *, int pid, bool stopped);
    /* Stops a client's process between two records; false: it cannot be had. */
    bool (*stop_between_records)(struct conductor *, int strand);
    /* By the driver. The process has ended, on purpose. */
    void (*process_ended)(struct conductor *, int pid);
    /* A client's worker alone stands still: its watchdog goes on. The number of faults that are left, as above. */
    int (*strand_stopped)(struct conductor *, int strand, bool stopped);
    /* Whether a strand that was stopped does stand still by now, and how often it has gone on so far. */
    bool (*strand_stands)(const struct conductor *, int strand);
    uint64_t (*strand_moves)(const struct conductor *, int strand);
    /* The server cannot answer, or can again: it is not waited for meanwhile. */
    void (*server_silent)(struct conductor *, int server, bool silent);
    /* Whether it answers the conductor now, on the connection that is kept from then on: it needs no new one later. */
    bool (*server_answers)(struct conductor *, int server);
    /* The server answers at once, but runs nothing. */
    void (*server_busy)(struct conductor *, int server, bool busy);
    bool (*server_works)(const struct conductor *, int server); /* neither */
    /* Lets all arrive that is in flight: a connection that was closed looks closed to whoever has its other end. */
    bool (*settle)(struct conductor *);
    /* So many replicas acknowledge what the server writes. */
    void (*server_replicas)(struct conductor *, int server, int replicas);
    /* From now on the server's wall clock is offset_ns ahead of the trial's and gains drift_ppm. False: it has no clock
     * of its own. */
    bool (*server_clock)(struct conductor *, int server, int64_t offset_ns, int64_t drift_ppm);
    int64_t (*server_wall_us)(const struct conductor *, int server); /* what it should show */
    /* How far it is ahead now, and how fast that grows. */
    bool (*server_clock_error)(const struct conductor *, int server, int64_t *offset_ns, int64_t *drift_ppm);
    /* The same for the wall clock of the client that has this strand. */
    bool (*host_clock)(struct conductor *, int strand, int64_t offset_ns, int64_t drift_ppm);
    bool (*host_clock_error)(const struct conductor *, int strand, int64_t *offset_ns, int64_t *drift_ppm);
    int64_t (*host_wall_ns)(const struct conductor *, int strand); /* what that client reads */
    int64_t (*host_mono_ns)(const struct conductor *, int strand); /* and how far its monotonic clock has come */
    /* By the driver. Time passes for everybody, while the monotonic clock of the client that has this strand stands;
     * ends when false. The number of faults that are left, as above. */
    int (*host_suspended)(struct conductor *, int strand, bool suspended);
    int64_t (*mono_ns)(const struct conductor *); /* the trial's clock */
    int64_t (*wall_ns)(const struct conductor *); /* what a right wall clock shows */
    /* From here on replies may stay away: nobody keeps the turn while it waits for one. */
    void (*unreliable)(struct conductor *);
    /* By the driver. Starts the server again, in the same place with what is in its directory; true when it answers. */
    bool (*server_restart)(int server);
    /* By the driver. Nobody counts on the replica any more: it does not hear of its master's writes. */
    void (*replica_lost)(int server);
    /* By the driver. What led clients to a server leads them to another from now on. False: no client knows it. */
    bool (*clients_lead)(int from, int to);
    /* By the driver. The server follows that master, and so does whoever followed the server; true when they have
     * acknowledged a write. Where sentinels or a cluster see to that, it is waited for. */
    bool (*server_follow)(int server, int master);
    /* By the driver. Starts a client that has ended again, under another name; true when it has opened its lock. */
    bool (*client_restart)(int strand);
    /* By the driver. Asks a server that speaks SQL for a number; INT64_MIN: there was no answer. */
    int64_t (*server_query)(int server, const char *statement);
};

struct fault_option {
    const char *name, *value;
};

/* What it is done to. Strings stay the caller's; what a target does not have is 0, -1 (server, strand) or NULL. */
struct fault_target {
    const char *name;                 /* "client-1", "redis-2" */
    int pid;                          /* the process */
    int server;                       /* its number at the conductor */
    int strand;                       /* the client's worker, its number at the conductor; the watchdog's is the next */
    const char *service;              /* of a server: what it speaks, "postgres" for SQL; NULL: RESP */
    const char *socket;               /* the unix socket on which the server listens; of a client, its first node's */
    const char *directory;            /* the server's data */
    const char *proxy;                /* the proxy's control socket */
    const char *links;                /* a pattern of the proxy's links that are concerned: "client-1>redis-*" */
    const char *probe;                /* a key that the server may have and nobody else uses; NULL: any will do */
    const struct fault_target *other; /* who takes part, each has the next in its `other`: the replica of a failover */
    struct fault_target *next;        /* of "clients": the next one that it is done to, each with a state of its own */
    const struct fault_option *options;
    size_t option_count;
    const struct fault_means *means;
    char state[FAULT_STATE]; /* the fault's own, zero before inject; aligned for any type */
};

/* What happened, in words: what was seen, or why it failed. */
struct fault_report {
    char text[256];
};

/* When prove can see something. */
enum fault_moment {
    FAULT_AT_ONCE = 0,     /* as soon as it is injected */
    FAULT_BEFORE_HEAL = 1, /* when it had its time: a message had to come by */
    FAULT_AFTER_HEAL = 2,  /* only when it is over: a server had to come back */
};

enum fault_time { FAULT_VIRTUAL = 1, FAULT_REAL = 2 };

/* An option that a fault understands. */
struct fault_word {
    const char *name;
    const char *usual;   /* its value when it is not given; NULL: it must be given */
    const char *meaning; /* with the unit */
};

struct fault {
    const char *name;    /* as on the command line */
    const char *summary; /* one line */
    const char *proof;   /* what prove looks at */
    const char *explanation;
    const char *source;
    const char *target;               /* "client", "server", "link" or "clients"; "client or server" */
    const struct fault_word *options; /* ends with a name of NULL; NULL: none */
    enum fault_moment moment;
    unsigned times; /* enum fault_time, or-ed: in which kinds of time it can bite */
    /* What must be so before the moment of inject, which does it itself when nobody did; heal undoes it. NULL: nothing.
     */
    bool (*prepare)(struct fault_target *target, struct fault_report *report);
    bool (*inject)(struct fault_target *target, struct fault_report *report);
    bool (*prove)(struct fault_target *target, struct fault_report *report);
    bool (*heal)(struct fault_target *target, struct fault_report *report);
};

/* All faults, sorted by name; ends with NULL. */
extern const struct fault *const FAULT_TABLE[];

/* NULL: no such fault. */
const struct fault *fault_find(const char *name);

/* False with a sentence when the target's options are not the fault's, or one that must be given is missing. */
bool fault_check_options(const struct fault *fault, const struct fault_target *target, struct fault_report *report);

/* The value of an option, the usual one when it was not given. */
const char *fault_text(const struct fault *fault, const struct fault_target *target, const char *name);
/* The same as a number; false with a sentence when it is none, or outside [low, high]. */
bool fault_number(const struct fault *fault, const struct fault_target *target, const char *name, int64_t low,
                  int64_t high, int64_t *value, struct fault_report *report);

/* Writes the report and returns false, for a `return fault_fail(...)`. */
bool fault_fail(struct fault_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
