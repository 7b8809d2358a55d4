/* The resource that the lock protects: a register, a counter and a set. It records every access in the history. Its
 * mode decides which accesses it refuses:
 *
 *   open                     accepts everything
 *   fence-writes             refuses a write whose token is older than the newest token of a *write*
 *   fence-reads-and-writes   refuses any access whose token is older than the newest token of a read or a write
 *   compare-owner            notes the grant of each read: refuses a write under another grant than the last one noted
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
 * A version counts the accepted writes of its object. Values are 64-bit integers. An access without ACTOR is recorded
 * as a stranger's. This unit knows no transport: harness/resource/store_main.c serves sockets, the explorer calls it.
 * The three objects may also be kept elsewhere: then the caller carries out each access that resource_serve returns,
 * and passes its result to resource_conclude. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/resp_service/reply_text.h"
#include "harness/scheduler/actor.h"

enum resource_mode {
    RESOURCE_OPEN,
    RESOURCE_FENCE_WRITES,
    RESOURCE_FENCE_READS_AND_WRITES,
    RESOURCE_COMPARE_OWNER,
    RESOURCE_COMPARE_AND_SET,
    RESOURCE_MODES
};

/* A request. `based_on`: the version that the value was computed from, -1: none. */
struct resource_access {
    unsigned object; /* enum history_object */
    bool write, atomic;
    int64_t value, token, actor, op, grant, based_on;
};

/* Its result. `version` is the object's after the access, -1: unknown; `newest_token` is for a refusal, 0: unknown. */
struct resource_result {
    bool refused;
    int64_t value, version, newest_token;
};

/* What resource_serve did with a request. The last two only occur with a resource that is kept elsewhere. */
enum resource_served {
    RESOURCE_ANSWERED,
    RESOURCE_QUIT,   /* answered; the caller closes the connection */
    RESOURCE_ACCESS, /* the caller carries out *access, then calls resource_conclude */
    RESOURCE_PING,   /* the caller answers when all pending accesses are answered */
};

struct resource {
    struct actor actor; /* of its records */
    enum resource_mode mode;
    bool elsewhere; /* the fields below, up to `stranger`, are not used */
    int64_t newest_token;
    int64_t owner; /* the grant of the last read, 0: none */
    int64_t value[HISTORY_OBJECT_COUNT];
    int64_t version[HISTORY_OBJECT_COUNT];
    int64_t *members; /* the owner of the structure frees it */
    size_t member_count, member_room;
    uint32_t stranger; /* index of the name under which accesses without ACTOR are recorded */
};

/* A decimal number of 64 bits: digits, behind a '-' if it is below 0. False: the text is anything else. */
bool resource_number(const char *text, size_t length, int64_t *number);

/* False: no mode has this name. */
bool resource_mode_find(const char *name, enum resource_mode *mode);
const char *resource_mode_name(enum resource_mode mode);

/* Serves one request and appends its answer; of RESOURCE_ACCESS, fills *access instead. */
enum resource_served resource_serve(struct resource *resource, const redisReply *request, struct reply_text *reply,
                                    struct resource_access *access);

/* Records the result of an access, and appends its answer. */
void resource_conclude(struct resource *resource, const struct resource_access *access,
                       const struct resource_result *result, struct reply_text *reply);
