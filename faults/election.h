/* What failover-sentinel and failover-cluster share: the master is taken away, others elect the next one, and the old
 * one comes back as its replica. */
#ifndef LOCKSTORM_FAULTS_ELECTION_H
#define LOCKSTORM_FAULTS_ELECTION_H

#include "faults/replication.h"

enum { ELECTION_LIMIT_MS = 20000 };

/* Stands in the target's state, zero before use. */
struct election {
    struct replication replication;
    bool ready; /* the replicas are as they were wanted */
    bool lost;  /* the master is gone */
    bool led;   /* clients are led to the elected one */
    int elected;
    long long patience_ms; /* how long the others waited for it before, usually */
    char range[24];        /* failover-cluster: the slots that it had */
};

/* Options "how" (kill, pause) and "replicated" that both have; ends the list with the fault's own first. */
#define ELECTION_WORDS                                                                                                 \
    {"how", "kill", "kill: SIGKILL, its data is lost; pause: SIGSTOP, it comes back with what it had"},                \
        {"replicated", "no", "whether the replicas have the last writes: yes, or no (then they are cut off first)"}, { \
        NULL, NULL, NULL                                                                                               \
    }

/* The fault's prepare. */
bool election_prepare(const struct fault *fault, struct fault_target *target, struct fault_report *report);
/* Takes the master away once its replicas are as wanted. */
bool election_begin(const struct fault *fault, struct fault_target *target, struct fault_report *report);
/* Waits until one of the replicas says that it is a master, and leads the clients there. */
bool election_follow(struct fault_target *target, struct fault_report *report);
/* The elected one is a master and shows the last write, or not. */
bool election_shows(struct fault_target *target, struct fault_report *report);
/* Brings the old master back and waits until it follows the elected one. */
bool election_end(const struct fault *fault, struct fault_target *target, struct fault_report *report);

#endif
