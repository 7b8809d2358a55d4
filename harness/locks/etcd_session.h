/* What the locks on etcd share: questions to its HTTP gateway, and a lease to which keys are tied.
 *
 * Every question here can be asked twice without harm - who asks names the lease, and whose a key is can be seen - so
 * one without an answer is asked again, of the next node if there are several. */
#ifndef LOCKSTORM_LOCKS_ETCD_SESSION_H
#define LOCKSTORM_LOCKS_ETCD_SESSION_H

#include <jansson.h>

#include "harness/locks/lock.h"

enum { ETCD_OWNER_ROOM = 24 };

struct etcd_session {
    int64_t ttl_s;               /* etcd counts leases in seconds: what was asked for, rounded up */
    int64_t lease;               /* its id, chosen by the client; 0: none */
    char owner[ETCD_OWNER_ROOM]; /* the same in hexadecimal, for the names and values of keys */
    int node;                    /* whom the worker asks first */
    bool is_pending;             /* an acquire had no answer: the lease may hold the lock */
};

struct etcd_answer {
    enum outcome outcome; /* REFUSED: etcd said why not, and has done nothing */
    bool asked_again;     /* the first time there was no answer: it may have happened then */
    json_t *body;         /* of the answer if it is OK, else NULL; freed with json_decref, which takes NULL too */
};

/* Starts with no lease. */
void etcd_session_open(struct lock *lock, struct etcd_session *self);

/* POSTs a question, which it frees. *node is whom to ask first, and then who has answered. */
struct etcd_answer etcd_ask(struct env *env, int *node, const char *path, json_t *question);

/* A new lease, unless the one before may hold the lock: then that one is used again. */
enum outcome etcd_lease_grant(struct lock *lock, struct etcd_session *self);
/* Gives it a whole term again. REFUSED: it has ended. */
enum outcome etcd_lease_keep(const struct etcd_session *self, struct env *env, int *node);
/* Ends it, and all keys that are tied to it with it. REFUSED: it had ended before. UNKNOWN also when that cannot be
 * told from the first of two questions, whose answer was lost. */
enum outcome etcd_lease_revoke(struct lock *lock, struct etcd_session *self);

/* Bytes as JSON text in base64, which is how the gateway wants them; a new reference. */
json_t *etcd_bytes(const char *bytes, size_t length);
/* A 64-bit number, which the gateway writes as text and leaves out when it is 0. */
int64_t etcd_number(const json_t *object, const char *name);
json_t *etcd_decimal(int64_t number);
/* The revision of the store that an answer speaks of. */
int64_t etcd_revision(const json_t *body);
/* The first key of a range's answer, borrowed; NULL: there is none. */
const json_t *etcd_first_key(const json_t *range);
/* The answer to the n-th operation of a transaction, borrowed. */
const json_t *etcd_range_of(const json_t *transaction, size_t index);

#endif
