/* What a client does with its lock and the store, one step at a time, each recorded in the history. The same in a
 * process of its own (harness/client.c) and in the explorer.
 *
 * Stamps are conservative: a grant is recorded after it came back, a release before it is sent, so that no correct lock
 * can look wrong. */
#ifndef LOCKSTORM_CLIENT_WORK_H
#define LOCKSTORM_CLIENT_WORK_H

#include "harness/actor.h"
#include "harness/locks/lock.h"

struct client {
    struct actor actor;
    struct env *env;
    struct lock lock;
    struct strand_place *place;
    bool extends;      /* its lease, in the middle of a workload's work; refused, it does not write */
    int store;         /* the store's number among the nodes */
    uint32_t resource; /* index of the lock's name */
    uint32_t op;       /* the last operation's number */
    uint32_t grant;    /* index of the grant it acts under, 0: none */
    uint32_t depth;    /* grants of a re-entrant lock that it has not released; of any other: 1 or 0 */
    int64_t token;
    int64_t version[HISTORY_OBJECT_COUNT]; /* last read under this grant, -1: none */
};

/* Opens the lock and records what it is. UNKNOWN: a node did not answer. lock_close follows in either case. */
enum outcome client_open(struct client *client, const struct lock_type *type, const struct lock_options *options);

/* Does one step; *result starts as UNKNOWN. */
void client_step(struct client *client, const struct step *step, struct step_result *result);

/* The lock tells of its own accord until when to believe (env_tell_validity). */
void client_told_validity(void *client, int64_t valid_until_ns);

#endif
