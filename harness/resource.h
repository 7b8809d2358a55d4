/* The resource that the lock protects: a register, a counter and a set. It records every access in the history and, by
 * its mode, refuses accesses with an old token:
 *
 *   open                     accepts everything
 *   fence-writes             refuses a write whose token is older than the newest *written* with
 *   fence-reads-and-writes   a token also counts when it reads: refuses any access older than the newest *seen*
 *   compare-owner            a read leaves its grant as a mark: refuses a write under any other grant
 *   compare-and-set          refuses a write that was not computed from the newest version; needs no token
 *
 * The fencing modes are Kleppmann 2016, "Making the lock safe with fencing"; that a check on writes only still loses an
 * update is Junqueira 2015, "Note on fencing and distributed locks". That tokens need no order where the resource can
 * compare and set is antirez 2016, "Is Redlock safe?"; a version column is what most databases offer for it. A mode
 * that checks tokens refuses an access without one. ADD is computed by the resource: it is never refused for its
 * version.
 *
 *   GET register|counter|set [options]       -> [value, version]; of the set: [size, version]
 *   SET register|counter value [options]     -> [value, version]
 *   ADD counter|set value [options]          -> [value, version]; of the set: [1 new or 0 was there, version]
 *   MEMBERS   MODE   PING   QUIT
 *   options: TOKEN t   VERSION v (that the value was computed from)   ACTOR a   OP n   GRANT g (for the history)
 *
 * A version counts the accepted writes of its object. Values are 64-bit integers. Whoever gives no ACTOR is recorded as
 * a stranger. How requests arrive is somebody else's: harness/store.c serves sockets. The three objects may lie
 * elsewhere, too: whoever keeps them carries out the accesses that it is given, and says what came of each. */
#ifndef LOCKSTORM_RESOURCE_H
#define LOCKSTORM_RESOURCE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/actor.h"

enum resource_mode {
    RESOURCE_OPEN,
    RESOURCE_FENCE_WRITES,
    RESOURCE_FENCE_READS_AND_WRITES,
    RESOURCE_COMPARE_OWNER,
    RESOURCE_COMPARE_AND_SET,
    RESOURCE_MODES
};

/* What a request says besides its verb. `based_on`: the version that the value was computed from, -1: none. */
struct resource_access {
    unsigned object; /* enum history_object */
    bool write, atomic;
    int64_t value, token, actor, op, grant, based_on;
};

/* What became of it. `version` is the object's after it, -1: not known; `newest_token`, of a refusal, 0: not known. */
struct resource_result {
    bool refused;
    int64_t value, version, newest_token;
};

/* What became of a request. The last two only come of a resource that is kept elsewhere. */
enum resource_served {
    RESOURCE_ANSWERED,
    RESOURCE_QUIT,   /* answered; it asked to be disconnected */
    RESOURCE_ACCESS, /* to be carried out, and then concluded */
    RESOURCE_PING,   /* to be answered when all that is under way has been */
};

struct resource {
    struct actor actor; /* as which it records */
    enum resource_mode mode;
    bool elsewhere; /* what follows up to the stranger is not used */
    int64_t newest_token;
    int64_t owner; /* the grant of the last read, 0: none */
    int64_t value[HISTORY_OBJECT_COUNT];
    int64_t version[HISTORY_OBJECT_COUNT];
    int64_t *members; /* the owner of the structure frees it */
    size_t member_count, member_room;
    uint32_t stranger; /* index of the name of whoever gives none */
};

/* Encoded answers that wait to be sent; the owner frees `bytes`. */
struct resource_answers {
    char *bytes;
    size_t length;
};

/* False: no mode is called so. */
bool resource_mode_find(const char *name, enum resource_mode *mode);
const char *resource_mode_name(enum resource_mode mode);

/* Serves one request and appends its answer, or leaves the access that it asks for in *access. */
enum resource_served resource_serve(struct resource *resource, const redisReply *request,
                                    struct resource_answers *answers, struct resource_access *access);

/* Records what became of an access, and appends its answer. */
void resource_conclude(struct resource *resource, const struct resource_access *access,
                       const struct resource_result *result, struct resource_answers *answers);

/* Appends an encoded answer. */
void resource_answer(struct resource_answers *answers, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
