/* What a master tells its replica, held until the schedule lets it arrive.
 *
 * The explorer takes the stream itself, as a replica does (PSYNC), and passes it on to a second real server, command by
 * command as the master wrote it. So it is known what has arrived there and what has not; the master hears of it
 * (REPLCONF ACK), and WAIT answers by it. The second server is an ordinary one, to which nobody else talks before it is
 * promoted. */
#ifndef LOCKSTORM_EXPLORER_STREAM_H
#define LOCKSTORM_EXPLORER_STREAM_H

#include "harness/explorer/node.h"

struct stream {
    struct node *master, *replica;
    struct link link; /* to the master, as its replica */
    char *held;       /* encoded commands that have not arrived */
    size_t length, room;
    int64_t offset; /* of what has arrived, as master and replica count */
};

/* Follows the master from now on; what it has by then is not passed on. Both are open, and stay where they are. */
void stream_open(struct stream *stream, struct node *master, struct node *replica);
void stream_close(struct stream *stream);

/* Takes what the master has written since; the master is settled. */
void stream_collect(struct stream *stream);
/* All that is held arrives, and the master is told so. */
void stream_arrive(struct stream *stream);
/* The replica has what its master has, and nothing else; nothing is held. */
void stream_resync(struct stream *stream);
/* All that is held, and what comes until now, is forgotten. The master takes it for arrived. */
void stream_forget(struct stream *stream);

#endif
