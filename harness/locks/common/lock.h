/* The lock table: one small C file per pattern, each a struct lock_type. A lock touches only its environment
 * (harness/environment/env.h), which a test enforces. To add one: copy redis/set_nx_px.c, change it, add a line to
 * lock_table.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/environment/env.h"

enum lock_waiting {
    LOCK_WAITS_NOT = 0,
    LOCK_WAITS_POLLING,
    LOCK_WAITS_PUSH,
    LOCK_WAITS_BLOCKING_POP,
    LOCK_WAITS_IN_SERVER, /* the caller waits in a queue of the server */
};

/* The service on which a lock lives. */
enum lock_service { LOCK_SERVICE_REDIS = 0, LOCK_SERVICE_ETCD, LOCK_SERVICE_POSTGRES, LOCK_SERVICE_ZOOKEEPER };

/* What a pattern offers by design. The bits are part of the history format (HISTORY_LOCK_OPEN). */
enum lock_trait {
    LOCK_TRAIT_LEASE = 1,     /* the lock frees itself when its lease runs out */
    LOCK_TRAIT_TOKEN = 2,     /* a grant carries a fencing token */
    LOCK_TRAIT_REENTRANT = 4, /* the holder may acquire again */
    LOCK_TRAIT_FAIR = 8,      /* grants come in the order of the requests */
    LOCK_TRAIT_RENEWS = 16,   /* a watchdog extends the lease while the process runs */
};

enum { LOCK_CAPACITY_ASKED = -1 };

/* The answer to an acquire. Zero is unknown. */
struct lock_grant {
    enum outcome outcome;
    int64_t token;          /* fencing token, 0: none */
    int64_t valid_until_ns; /* env_mono_ns until which the lock states the grant to be valid; 0: until its release */
    int64_t item; /* of a lock that grants several items: which one; 0: there is only one, or it does not say */
};

struct lock_options {
    const char *resource; /* the name of what is locked: any bytes */
    size_t resource_length;
    int64_t lease_ms;
    int64_t permits;  /* of a lock with LOCK_CAPACITY_ASKED; others ignore it */
    bool fixed_lease; /* no watchdog renews the lease */
};

struct lock {
    const struct lock_type *type;
    struct env *env;
    struct lock_options options;
    unsigned traits; /* of enum lock_trait; like capacity the type's, or as its adapter describes itself */
    int capacity;
    void *state; /* of type->state_size bytes, zeroed before open */
};

struct poll_pace;

struct lock_type {
    const char *name;        /* as on the command line */
    const char *summary;     /* one line */
    const char *explanation; /* how it works, what it promises, what it costs, where it breaks */
    const char *source;      /* article, section, library and version */
    const char *fixed;       /* of a pattern of the zoo, which has a published bug: the pattern without it; else NULL */
    unsigned traits;         /* of enum lock_trait */
    int capacity;            /* holders at once: 1, or LOCK_CAPACITY_ASKED: as many permits as asked for */
    bool once;               /* an item that is released is done, and is never granted again */
    bool transaction;        /* an open transaction holds it: its end is the release */
    enum lock_waiting waits;
    enum lock_service service;
    int nodes;    /* independent servers that it needs; 0: one */
    int replicas; /* of each of them */
    int poll_ms;  /* the longest that a waiter sleeps between two tries; 0: it does not poll, or does not say */
    size_t state_size;
    /* All but acquire may be NULL: there is nothing to do. Without renew a renewal is refused if the lock has a lease
     * and no watchdog, and is otherwise ok, because its holder has nothing to renew. wait_ms: 0: one attempt, -1: as
     * long as the pattern itself waits. An acquire of unknown outcome may have been granted: the lock keeps what it
     * needs to release it. */
    enum outcome (*open)(struct lock *lock);
    struct lock_grant (*acquire)(struct lock *lock, int64_t wait_ms);
    enum outcome (*renew)(struct lock *lock);
    enum outcome (*release)(struct lock *lock);
    /* Asks the node whether this client holds the lock: OK yes, REFUSED no. NULL: the pattern cannot say. */
    enum outcome (*is_held)(struct lock *lock);
    void (*close)(struct lock *lock);
    /* Of a lock whose acquire is poll_acquire (poll.h): one attempt, and how long it sleeps between two. */
    struct lock_grant (*attempt)(struct lock *lock);
    const struct poll_pace *pace;
    /* Where it differs from the other locks that use the same functions: a struct that these functions know. */
    const void *variant;
};

/* All patterns, sorted by name; ends with NULL. */
extern const struct lock_type *const LOCK_TABLE[];
/* Those of the bug zoo (harness/locks/zoo), which users are not offered; likewise. */
extern const struct lock_type *const LOCK_ZOO[];

/* Not in the tables: the program that the client hosts describes itself (docs/adapters.md). */
extern const struct lock_type LOCK_ADAPTER;

/* Looks in both tables; NULL: no such pattern. */
const struct lock_type *lock_find(const char *name);

/* Opens into *lock; OK, or UNKNOWN when a node did not answer. lock_close always follows. options stay the caller's. */
enum outcome lock_open(struct lock *lock, const struct lock_type *type, struct env *env,
                       const struct lock_options *options);
struct lock_grant lock_acquire(struct lock *lock, int64_t wait_ms);
enum outcome lock_renew(struct lock *lock);
enum outcome lock_release(struct lock *lock);
enum outcome lock_is_held(struct lock *lock);
void lock_close(struct lock *lock);
