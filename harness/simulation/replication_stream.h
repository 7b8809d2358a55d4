/* A replication stream from a master to its replica, held until the schedule lets it arrive.
 *
 * The simulation receives the stream as a replica does (PSYNC) and forwards it to a second real server, command by
 * command as the master wrote it. So it knows what has arrived there. It acknowledges to the master (REPLCONF ACK), by
 * which WAIT answers. The second server is an ordinary one; no client talks to it before it is promoted. */
#pragma once

#include "harness/simulation/node.h"

struct stream {
    struct node *master, *replica;
    struct node_connection connection; /* to the master, which takes it for a replica's */
    char *held;                        /* encoded commands that have not arrived */
    size_t length, room;
    int64_t offset; /* replication offset of what has arrived */
};

/* Follows the master from now on; earlier data is not forwarded. Both nodes are open and must not move in memory. */
void stream_open(struct stream *stream, struct node *master, struct node *replica);
void stream_close(struct stream *stream);

/* Receives what the master has written since; node_settle the master first. */
void stream_collect(struct stream *stream);
/* Forwards all that is held to the replica and acknowledges it to the master. */
void stream_arrive(struct stream *stream);
/* Copies the master's data to the replica and deletes the replica's own; nothing is held afterwards. */
void stream_resync(struct stream *stream);
/* Drops all that is held or on its way, and acknowledges it to the master. */
void stream_forget(struct stream *stream);
