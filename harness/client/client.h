/* What a client does with its lock and the resource, one step at a time, each recorded in the history. The same in a
 * process of its own (harness/client/client_main.c) and in the explorer.
 *
 * Stamps are conservative: a grant is recorded after the lock has returned it, a release before it is requested. So no
 * correct lock can look wrong. */
#pragma once

#include "harness/locks/common/lock.h"
#include "harness/scheduler/actor.h"

/* A client's own connection to the resource that the lock protects. It is no node of the lock's environment, so a lock
 * cannot reach the resource. A client that runs in a process of its own has a socket; in the explorer a command is a
 * step of the schedule, like a command of the lock. The resource speaks RESP; harness/resource/resource.h lists its
 * commands. */
struct resource_connection {
    /* Sends one encoded command and waits for its reply, which the connection owns until the next command. Never NULL;
     * UNKNOWN: no reply within the reply limit, or the connection was lost. */
    const struct env_reply *(*exchange)(void *holder, const char *command, size_t length);
    void *holder;
};

struct client {
    struct actor actor;
    struct env *env;
    struct lock lock;
    struct task_slot *place;
    bool renewing; /* a renewal that it has invoked is under way */
    bool extends;  /* extends its lease in the middle of a workload's work, and does not write when that is refused */
    bool reenters; /* acquires again in the middle of a workload's work, and releases twice */
    bool checks_validity; /* looks at its clock before each write, and does not write after the validity's end */
    _Atomic int64_t valid_until_ns; /* what the lock last announced, by its host's clock; 0: the grant states none */
    struct resource_connection resource;
    uint32_t lock_name; /* index of the lock's name */
    uint32_t op;        /* the last operation's number */
    uint32_t grant;     /* index of the grant that it acts under, 0: none */
    uint32_t depth;     /* how many grants it has not released: more than 1 only of a re-entrant lock */
    /* Acquires that were refused, and releases that came back ok and left nothing to release. */
    uint32_t settled;
    bool doubtful; /* the outcome of some acquire or release is unknown */
    int64_t token;
    int64_t version[HISTORY_OBJECT_COUNT]; /* last read under this grant, -1: none */
};

/* Opens the lock and records what it is. UNKNOWN: a node did not answer. lock_close follows in either case. */
enum outcome client_open(struct client *client, const struct lock_type *type, const struct lock_options *options);

/* Does one step; *result starts as UNKNOWN. */
void client_step(struct client *client, const struct step *step, struct step_result *result);

/* The lock has called env_tell_validity. `client` is a struct client. */
void client_announce_validity(void *client, int64_t valid_until_ns);

/* The lock has called env_tell_answers. `client` is a struct client. */
void client_record_answers(void *client, int asked, int64_t answers, enum outcome outcome);
