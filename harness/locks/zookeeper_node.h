/* The node that a client of a queue has in it, and the directory that it is in: made, found again, deleted. */
#ifndef LOCKSTORM_LOCKS_ZOOKEEPER_NODE_H
#define LOCKSTORM_LOCKS_ZOOKEEPER_NODE_H

#include "harness/locks/zookeeper_queue.h"

/* The session is asked for longer than it lives without an answer: then it is lost, or whoever asks gives up. */
enum { ZOOKEEPER_RETRY_MS = 50, ZOOKEEPER_PATIENCE_SESSIONS = 2 };

/* How a step came out; what is unknown is tried again. */
enum zookeeper_step { ZOOKEEPER_UNKNOWN = 0, ZOOKEEPER_DONE, ZOOKEEPER_WAIT, ZOOKEEPER_AGAIN };

bool zookeeper_session_is_lost(struct lock *lock);

/* Two parts and what is between them; the caller frees. */
char *zookeeper_path(const char *before, const char *between, const char *after);

/* Where the queue for this name is; the caller frees. And makes it, if it is not there. */
char *zookeeper_directory(const struct lock_options *options);
enum outcome zookeeper_directory_ensure(struct lock *lock);

/* Makes a node with a new guid: DONE when it is known, AGAIN when there has to be a directory first. */
enum zookeeper_step zookeeper_node_create(struct lock *lock);
/* Looks for the node of a create whose answer never came: AGAIN when there is none. */
enum zookeeper_step zookeeper_node_find(struct lock *lock);
/* REFUSED: it was gone. */
enum outcome zookeeper_node_delete(struct lock *lock);
void zookeeper_node_forget(struct zookeeper_queue *self);

#endif
