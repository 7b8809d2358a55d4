/* What the locks on etcd share: requests to its HTTP gateway, and a lease to which keys are tied.
 *
 * Every request here can be repeated without harm (the client chooses the lease's id, and a key's value names its
 * owner), so one without an answer is sent again, to the next node if there are several. */
#pragma once

#include <jansson.h>

#include "harness/locks/common/lock.h"

enum { ETCD_OWNER_ROOM = 24 };

struct etcd_session {
    int64_t ttl_s;               /* etcd counts leases in seconds: what was asked for, rounded up */
    int64_t lease;               /* its id, chosen by the client; 0: none */
    char owner[ETCD_OWNER_ROOM]; /* the same in hexadecimal, for the names and values of keys */
    int node;                    /* which one the worker asks first */
    bool is_pending;             /* an acquire had no answer: the lease may hold the lock */
};

struct etcd_answer {
    enum outcome outcome; /* REFUSED: etcd answered with an error, and has done nothing */
    bool asked_again;     /* the first request had no answer, and may have been carried out */
    json_t *body;         /* of the answer if it is OK, else NULL; freed with json_decref, which takes NULL too */
};

/* Starts with no lease. */
void etcd_session_open(struct lock *lock, struct etcd_session *self);

/* POSTs a request, which it frees. *node is the node to ask first; afterwards the one that has answered. */
struct etcd_answer etcd_ask(struct env *env, int *node, const char *path, json_t *question);

/* Gets a new lease; uses the one before again if that may hold the lock. */
enum outcome etcd_lease_grant(struct lock *lock, struct etcd_session *self);
/* Gives the lease a full term again. REFUSED: it has ended. */
enum outcome etcd_lease_keep(const struct etcd_session *self, struct env *env, int *node);
/* Ends the lease, and all keys that are tied to it. REFUSED: it had ended before. UNKNOWN also when a first request,
 * whose answer was lost, may have ended it. */
enum outcome etcd_lease_revoke(struct lock *lock, struct etcd_session *self);

/* Bytes as JSON text in base64, which is how the gateway wants them; a new reference. */
json_t *etcd_bytes(const char *bytes, size_t length);
/* A 64-bit number, which the gateway writes as text and leaves out when it is 0. */
int64_t etcd_number(const json_t *object, const char *name);
json_t *etcd_decimal(int64_t number);
/* The revision of etcd's store in an answer. */
int64_t etcd_revision(const json_t *body);
/* The first key of a range's answer, borrowed; or NULL. */
const json_t *etcd_first_key(const json_t *range);
/* The answer to the n-th operation of a transaction, borrowed. */
const json_t *etcd_range_of(const json_t *transaction, size_t index);
