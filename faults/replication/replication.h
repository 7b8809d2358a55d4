/* What the failovers share: they decide whether replicas have their master's last writes, and read it back. */
#pragma once

#include "faults/common/fault.h"

enum { REPLICATION_REPLICAS = 8, REPLICATION_NAME = 128, REPLICATION_RULE = 96 };

/* Of one failover; stands in the target's state, zero before use. */
struct replication {
    bool cut;    /* the replicas receive nothing from their master */
    bool paused; /* the master accepts no writes */
    int count;
    int replicas[REPLICATION_REPLICAS]; /* the scheduler's numbers */
    char rule[REPLICATION_RULE];        /* the proxy's rule that cuts the link; or empty */
};

/* Finds the target's replicas among the servers that take part; `first_only`: considers only the first of these. False
 * with a sentence if there is no replica. */
bool replication_find(struct replication *replication, const struct fault_target *target, bool first_only,
                      struct fault_report *report);

/* From here on the replicas receive nothing that is written to the target; they have what was written before. The
 * master disconnects and refuses them. With `by_proxy`, and a proxy, the link of the only replica swallows what the
 * master sends instead - not what the replica sends, whose acknowledgements may still be on their way. */
bool replication_cut(struct replication *replication, const struct fault_target *target, bool by_proxy,
                     struct fault_report *report);

/* Stops writes to the target and waits until its replicas have everything that was written to it. */
bool replication_drain(struct replication *replication, const struct fault_target *target, struct fault_report *report);

/* Whether a server is as intended: without the last write after a cut, with it after a drain. The report says what was
 * seen. */
bool replication_shows(const struct replication *replication, const struct fault_target *target, const char *socket,
                       struct fault_report *report);

/* After a drain: the target accepts writes again. */
void replication_resume(struct replication *replication, const struct fault_target *target);

/* Undoes cut and drain at a target that runs. Harmless when there was none. */
void replication_mend(struct replication *replication, const struct fault_target *target);

/* Whether ROLE replies with this word ("master", "slave", "sentinel"). */
bool role_is(const char *socket, const char *role, struct fault_report *report);
/* Waits for it; a "slave" must be connected to its master, too. */
bool role_await(const char *socket, const char *role, int limit_ms, struct fault_report *report);

/* The server with that number among those that take part; or NULL. */
const struct fault_target *find_server(const struct fault_target *target, int server);

/* The option "replicated" of the target's fault: yes or no; false with a sentence when it is neither. */
bool replicated_option(const struct fault_target *target, bool *replicated, struct fault_report *report);

/* Closes the connections of clients to a server, which they would otherwise go on using. */
void disconnect_clients(const char *socket);
