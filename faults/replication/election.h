/* What failover-sentinel and failover-cluster share: the master is killed or stopped, others elect a new one, and the
 * old one comes back as its replica.
 *
 * Those who elect take a master for down after a time without a reply, their patience. It is long as long as no fault
 * is injected, so that a busy machine causes no election; inject makes it short, heal long again. */
#pragma once

#include "faults/replication/replication.h"

enum { ELECTION_LIMIT_MS = 60000, ELECTION_POLL_US = 5000 };

/* Stands in the target's state, zero before use. */
struct election {
    struct replication replication;
    bool ready;            /* the replicas are in the wanted state */
    bool lost;             /* the master is killed or stopped */
    bool led;              /* clients are led to the elected server */
    int elected;           /* its number at the scheduler */
    long long patience_ms; /* before inject; 0: not known */
    char range[24];        /* failover-cluster: the slots that the master had */
};

/* The options "how" (kill, pause) and "replicated" of both faults. */
#define ELECTION_OPTIONS                                                                                               \
    {"how", "kill", "kill: SIGKILL, its data is lost; pause: SIGSTOP, it comes back with its data"}, {                 \
        "replicated", "no", "whether the replicas have the last writes: yes, or no (then they are cut off first)"      \
    }

struct election *election_of(struct fault_target *target);

/* Reads the option of this name: the patience that the fault sets. */
bool election_patience(const struct fault_target *target, const char *option, int64_t *patience_ms,
                       struct fault_report *report);

/* The fault's prepare. */
bool election_prepare(struct fault_target *target, struct fault_report *report);
/* Kills or stops the master once its replicas are in the wanted state. */
bool election_begin(struct fault_target *target, struct fault_report *report);
/* Waits until one of the replicas reports that it is a master, and leads the clients there. */
bool election_follow(struct fault_target *target, struct fault_report *report);
/* Whether the elected server is a master, and has the last write or lacks it, as intended. */
bool election_shows(struct fault_target *target, struct fault_report *report);
/* Brings the old master back, waits until it follows the elected server, and sets the patience that was before. */
bool election_heal(struct fault_target *target,
                   void (*set_patience)(const struct fault_target *target, long long patience_ms),
                   struct fault_report *report);
