/* What the failovers share: whether a replica has its master's last writes, made so on purpose and read back. */
#ifndef LOCKSTORM_FAULTS_REPLICATION_H
#define LOCKSTORM_FAULTS_REPLICATION_H

#include "faults/fault.h"

enum { REPLICATION_REPLICAS = 8, REPLICATION_NAME = 128, REPLICATION_RULE = 96 };

/* Of one failover; stands in the target's state, zero before use. */
struct replication {
    bool cut;    /* the replicas hear nothing from their master */
    bool paused; /* the master takes no writes */
    int count;
    int replicas[REPLICATION_REPLICAS]; /* the conductor's numbers */
    char rule[REPLICATION_RULE];        /* the proxy's rule that cuts the link; empty: there is none */
};

/* Finds out who follows the target among those who take part; `first_only`: the first of them, and nobody else. False:
 * nobody does. */
bool replication_find(struct replication *replication, const struct fault_target *target, bool first_only,
                      struct fault_report *report);

/* From here on the replicas get nothing that is written to the target; what was written before, they have. The master
 * throws them out and refuses them. With the name of a fault in `rule`, and a proxy, the only replica's link swallows
 * instead what the master says - not what the replica says, whose acknowledgements are late by then. */
bool replication_cut(struct replication *replication, const struct fault_target *target, const struct fault *rule,
                     struct fault_report *report);

/* The replicas have all that was written to the target, and nothing more is written to it. */
bool replication_drain(struct replication *replication, const struct fault_target *target, struct fault_report *report);

/* Whether a server has what was written last: not after a cut, yes after a drain. The report says what was seen. */
bool replication_shows(const struct replication *replication, const struct fault_target *target, const char *socket,
                       struct fault_report *report);

/* After a drain: the target takes writes again. */
void replication_resume(struct replication *replication, const struct fault_target *target);

/* Undoes cut and drain at a target that runs. Harmless when there was none. */
void replication_mend(struct replication *replication, const struct fault_target *target);

/* Whether ROLE says this word ("master", "slave", "sentinel"). */
bool role_is(const char *socket, const char *role, struct fault_report *report);
/* The same, waited for; a "slave" must be connected to its master too. */
bool role_await(const char *socket, const char *role, int limit_ms, struct fault_report *report);

/* Who takes part with that number; NULL: nobody. */
const struct fault_target *taking_part(const struct fault_target *target, int server);

/* Whether the option "replicated" says yes; false with a sentence in *report when it says neither that nor no. */
bool replicated_option(const struct fault *fault, const struct fault_target *target, bool *replicated,
                       struct fault_report *report);

void pause_ms(int duration_ms);

/* The real time now, for a limit. */
int64_t real_ms(void);

#endif
