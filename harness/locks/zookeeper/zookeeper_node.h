/* The ephemeral node by which a client takes part in a queue on ZooKeeper, and the directory that it is in: made, found
 * again, deleted. The state of a lock that uses these functions begins with a struct zookeeper_node. */
#pragma once

#include "harness/locks/common/lock.h"

/* A request is repeated for longer than a session lives without an answer: by then the session is lost, or the client
 * gives up. */
enum { ZOOKEEPER_RETRY_MS = 50, ZOOKEEPER_PATIENCE_SESSIONS = 2 };
enum { ZOOKEEPER_GUID_DIGITS = 32 };

struct zookeeper_node {
    const char *kind; /* the part of its name after the guid: "lock", "write" */
    char *directory;
    char *path; /* NULL: it has none, as far as the client knows */
    char guid[ZOOKEEPER_GUID_DIGITS + 1];
    bool requested; /* a create with that guid was sent, so a node may exist */
    int64_t token;  /* its czxid */
};

/* The result of a step; a step that is UNKNOWN is repeated. */
enum zookeeper_step { ZOOKEEPER_UNKNOWN = 0, ZOOKEEPER_DONE, ZOOKEEPER_WAIT, ZOOKEEPER_AGAIN };

bool zookeeper_session_is_lost(struct lock *lock);

/* The three texts joined; the caller frees. */
char *zookeeper_path(const char *before, const char *between, const char *after);

/* The path of the queue's directory for this resource; the caller frees. */
char *zookeeper_directory(const struct lock_options *options);
/* Makes the directory unless it exists. */
enum outcome zookeeper_directory_ensure(struct lock *lock);

/* Makes a node with a new guid: DONE when its path is known, AGAIN when the directory was missing. */
enum zookeeper_step zookeeper_node_create(struct lock *lock);
/* Looks for the node of a create whose answer never came: AGAIN when it does not exist. */
enum zookeeper_step zookeeper_node_find(struct lock *lock);
/* REFUSED: it did not exist any more. */
enum outcome zookeeper_node_delete(struct lock *lock);
void zookeeper_node_forget(struct zookeeper_node *self);
