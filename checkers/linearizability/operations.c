#include "checkers/linearizability/operations.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/engine/checker.h"
#include "checkers/engine/hash.h"

enum { NONE = UINT32_MAX, POSITIONS_MAX = UINT32_MAX - 8 };

/* A process, an owner for which processes speak, or both. Each does one operation at a time. */
struct operation_process {
    char *word; /* of an owner that has no number; NULL */
    int64_t number;
    uint32_t object;   /* of the operation under way, or of the latest one */
    uint32_t open;     /* the operation under way; NONE */
    uint32_t owner;    /* it speaks for: the one that it named last; at first itself */
    uint32_t speaker;  /* of an owner: the process that has an operation under way for it; NONE */
    uint64_t heard;    /* of an owner: 1 and the number of its latest event; 0: none */
    bool named;        /* the invocation under way named its owner */
    bool timed;        /* ... and its time: */
    int64_t called_ns; /* the time, */
    int64_t ttl_ns;    /* and the lease that it asked for; 0: none */
    struct holding *holdings;
    uint32_t holding_count, holding_room;
};

/* What a process knows of its hold of an object. */
struct holding {
    uint32_t object;
    uint32_t grants; /* that it has not released, as far as it knows */
    uint32_t lease;  /* the operation that stands for the end of its lease; NONE */
    int64_t ttl_ns;  /* that its latest grant or renewal stated; 0: none */
};

/* Who it is: a word, or a number. */
struct party {
    const char *word;
    int64_t number;
};

const char *const EVENT_TYPE[] = {"invoke", "ok", "fail", "info", NULL};

const char *operation_kind_name(enum operation_kind kind) {
    static const char *const names[OPERATION_KIND_COUNT] = {"acquire", "release", "renew", "refused renewal or release",
                                                            "read",    "write",   "cas",   "add"};
    return names[kind];
}

void operations_begin(struct operations *operations, struct limits *limits, const struct policies *policies) {
    *operations = (struct operations){.limits = limits, .policies = *policies};
}

/* --- processes and objects --- */

static uint64_t party_hash(struct party party) {
    uint64_t hash = hash_mix(0, party.word ? 1 : (uint64_t)party.number);
    for (const char *at = party.word; at && *at; at++) hash = hash_mix(hash, (unsigned char)*at);
    return hash;
}

static bool is_party(const struct operation_process *process, struct party party) {
    if (!process->word || !party.word) return process->word == party.word && process->number == party.number;
    return strcmp(process->word, party.word) == 0;
}

/* The slot of its entry, or the free one where it would be. */
static uint32_t *process_slot(const struct operations *operations, struct party party) {
    size_t mask = operations->table_room - 1, place = party_hash(party) & mask;
    while (operations->table[place] != NONE && !is_party(&operations->processes[operations->table[place]], party))
        place = (place + 1) & mask;
    return &operations->table[place];
}

static bool operations_table_grow(struct operations *operations) {
    size_t old = operations->table_room, room = old ? old * 2 : 64;
    uint32_t *table = limits_resize(operations->limits, NULL, 0, room * sizeof *table);
    if (!table) return false;
    memset(table, 0xff, room * sizeof *table);
    limits_free(operations->limits, operations->table, old * sizeof *table);
    operations->table = table;
    operations->table_room = room;
    for (uint32_t each = 0; each < operations->process_count; each++) {
        const struct operation_process *process = &operations->processes[each];
        *process_slot(operations, (struct party){process->word, process->number}) = each;
    }
    return true;
}

static uint32_t process_find(const struct operations *operations, int64_t number) {
    return operations->table_room ? *process_slot(operations, (struct party){NULL, number}) : NONE;
}

/* NULL for NULL, and when a limit is reached. */
static char *name_copy(struct operations *operations, const char *name) {
    char *copy = name ? limits_resize(operations->limits, NULL, 0, strlen(name) + 1) : NULL;
    return copy ? strcpy(copy, name) : NULL;
}

/* Adds a process that is not there yet. NONE: a limit is reached. */
static uint32_t process_get(struct operations *operations, struct party party) {
    if (2 * operations->process_count >= operations->table_room && !operations_table_grow(operations)) return NONE;
    uint32_t *slot = process_slot(operations, party);
    if (*slot != NONE) return *slot;
    if (!limits_more(operations->limits, operations->processes, operations->process_count, operations->process_room))
        return NONE;
    char *word = name_copy(operations, party.word);
    if (party.word && !word) return NONE;
    uint32_t index = (uint32_t)operations->process_count++;
    operations->processes[index] =
        (struct operation_process){.word = word, .number = party.number, .open = NONE, .owner = index, .speaker = NONE};
    return *slot = index;
}

static bool operations_is_object(const struct concurrent_object *object, const char *name) {
    if (!object->name || !name) return object->name == name;
    return strcmp(object->name, name) == 0;
}

/* The object of a name, which is added if it is not there yet; NONE: a limit is reached. There are few objects, and
 * mostly it is the `likely` one. */
static uint32_t object_get(struct operations *operations, const char *name, uint32_t likely) {
    struct concurrent_object *objects = operations->objects;
    if (likely < operations->object_count && operations_is_object(&objects[likely], name)) return likely;
    for (uint32_t each = 0; each < operations->object_count; each++)
        if (operations_is_object(&objects[each], name)) return each;
    if (!limits_more(operations->limits, operations->objects, operations->object_count, operations->object_room))
        return NONE;
    char *copy = name_copy(operations, name);
    if (name && !copy) return NONE;
    operations->objects[operations->object_count] = (struct concurrent_object){.name = copy};
    return (uint32_t)operations->object_count++;
}

static struct holding *holding_get(struct operations *operations, struct operation_process *process, uint32_t object) {
    for (uint32_t each = 0; each < process->holding_count; each++)
        if (process->holdings[each].object == object) return &process->holdings[each];
    if (process->holding_count == process->holding_room) {
        uint32_t room = process->holding_room ? process->holding_room * 2 : 1;
        void *grown =
            limits_resize(operations->limits, process->holdings, process->holding_room * sizeof *process->holdings,
                          room * sizeof *process->holdings);
        if (!grown) return NULL;
        process->holdings = grown;
        process->holding_room = room;
    }
    struct holding *holding = &process->holdings[process->holding_count++];
    *holding = (struct holding){.object = object, .lease = NONE};
    return holding;
}

/* --- leases --- */

/* An operation by which its owner holds, or not any more, and what is known of that. */
struct settled {
    struct concurrent_object *object;
    struct holding *holding; /* of the owner */
    struct operation *operation;
    int64_t until_ns; /* until then its lease runs; INT64_MAX: it has no known length */
};

/* The lease of an operation runs until then. False: a limit is reached. */
static bool lease_runs(struct operations *operations, struct concurrent_object *object, uint32_t operation,
                       int64_t until_ns) {
    if (!limits_more(operations->limits, object->leases, object->lease_count, object->lease_room)) return false;
    object->leases[object->lease_count++] = (struct operation_lease){until_ns, operation};
    return true;
}

static void lease_forget(struct concurrent_object *object, uint32_t operation) {
    for (size_t each = object->lease_count; each-- > 0;)
        if (object->leases[each].operation == operation) object->leases[each] = object->leases[--object->lease_count];
}

/* Leases that are over by the time of the event that comes next. Of a lock without owners, each end is an event. */
static void leases_expire(struct operations *operations, struct concurrent_object *object, int64_t now_ns) {
    for (size_t each = object->lease_count; each-- > 0;) {
        if (object->leases[each].until_ns > now_ns) continue;
        struct operation *operation = &object->list[object->leases[each].operation];
        if (operations->policies.owned) {
            operation->lapses = object->clock + 1;
        } else if (object->clock <= POSITIONS_MAX) {
            object->clock += 2;
            operation->call = object->clock - 1;
            operation->outcome = OUTCOME_UNKNOWN;
        }
        object->leases[each] = object->leases[--object->lease_count];
    }
}

/* --- what a completion means --- */

/* The caller fills it in. */
static struct operation *operation_add(struct operations *operations, struct concurrent_object *object) {
    if (!limits_more(operations->limits, object->list, object->count, object->room)) return NULL;
    return &object->list[object->count++];
}

/* The hold may end by itself when its lease is over, or from `position` on - the time of the grant's return, or of the
 * call of what renewed it - if the length is not known. */
static bool lease_from(struct operations *operations, struct settled *it, uint32_t position) {
    bool known = it->until_ns != INT64_MAX;
    uint32_t index = (uint32_t)(it->operation - it->object->list);
    if (operations->policies.owned && known && it->until_ns <= operations->latest_ns) {
        it->operation->lapses = it->operation->call; /* over before the answer came: any event since may have seen it */
        return true;
    }
    if (operations->policies.owned && known) it->operation->lapses = OPERATION_OPEN;
    if (operations->policies.owned) return !known || lease_runs(operations, it->object, index, it->until_ns);
    if (!known && !operations->policies.leases) return true;
    if (it->holding->lease == NONE) {
        struct operation lease = {.value = OPERATION_NIL,
                                  .from = OPERATION_NIL,
                                  .end = OPERATION_OPEN,
                                  .returned_at = OPERATION_OPEN,
                                  .process = it->operation->process,
                                  .kind = OPERATION_RELEASE,
                                  .outcome = OUTCOME_REFUSED};
        struct operation *added = operation_add(operations, it->object);
        if (!added) return false;
        *added = lease;
        it->holding->lease = (uint32_t)it->object->count - 1;
    }
    struct operation *lease = &it->object->list[it->holding->lease];
    lease_forget(it->object, it->holding->lease);
    if (known) return lease_runs(operations, it->object, it->holding->lease, it->until_ns);
    lease->call = position + 1; /* between this event and the next */
    lease->outcome = OUTCOME_UNKNOWN;
    return true;
}

/* The hold is over. If its release was answered ok, the end of its lease cannot have ended it. */
static void lease_over(struct settled *it, bool released) {
    if (it->holding->lease != NONE && released) {
        it->object->list[it->holding->lease].outcome = OUTCOME_REFUSED;
        lease_forget(it->object, it->holding->lease);
    }
    it->holding->lease = NONE;
}

static enum outcome acquired(struct operations *operations, struct holding *holding, enum event_type type) {
    if (type == EVENT_FAIL) return OUTCOME_REFUSED;
    if (type == EVENT_UNKNOWN) return operations->policies.timeout_not_happened ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
    holding->grants = operations->policies.nests ? holding->grants + 1 : 1;
    return OUTCOME_OK;
}

/* A release that failed is read by the policy where the releaser had been granted the lock and had not been answered to
 * a release since; otherwise it never happened. */
static enum outcome operations_released(struct operations *operations, struct holding *holding, enum event_type type) {
    if (type == EVENT_UNKNOWN) return OUTCOME_UNKNOWN;
    bool granted = holding->grants > 0;
    holding->grants -= granted;
    if (type == EVENT_OK) return OUTCOME_OK;
    if (!granted || operations->policies.failed_release == RELEASE_READ_NOT_HAPPENED) return OUTCOME_REFUSED;
    return operations->policies.failed_release == RELEASE_READ_RELEASED ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

/* A renewal that was answered ok says that its process held the lock. Any other says nothing, and never happened. */
static bool operations_renewed(struct operations *operations, struct settled *it, enum event_type type) {
    if (type != EVENT_OK) return true;
    if (operations->policies.owned) {
        it->operation->outcome = OUTCOME_OK;
        it->object->ok++;
        return lease_from(operations, it, it->operation->call);
    }
    /* The end of a lease of known length that was over by then may have been used. */
    bool over = it->until_ns != INT64_MAX && it->holding->lease != NONE &&
                it->object->list[it->holding->lease].outcome == OUTCOME_UNKNOWN;
    return it->holding->lease == NONE || over || lease_from(operations, it, it->operation->call);
}

/* Does the answer say that its process had lost the lock? Where holds are not owned, it may have. */
static bool operations_lost(struct operations *operations, struct settled *it, enum event_type type) {
    const struct policies *policies = &operations->policies;
    enum operation_kind kind = (enum operation_kind)it->operation->kind;
    bool unread = kind == OPERATION_RELEASE && policies->failed_release == RELEASE_READ_UNKNOWN;
    if (!policies->refused_lost || type != EVENT_FAIL || (kind != OPERATION_RENEW && !unread)) return false;
    it->operation->kind = policies->owned ? OPERATION_LOSS : OPERATION_RELEASE;
    it->operation->outcome = policies->owned ? OUTCOME_OK : OUTCOME_UNKNOWN;
    it->holding->grants = 0;
    it->object->ok += policies->owned;
    it->object->unknown += !policies->owned;
    return true;
}

/* What the answer states of the lease, or else its invocation; of a renewal, or else the hold. It runs from the call
 * on, at least: it began later. INT64_MAX: no length is known. */
static int64_t lease_until_ns(struct operations *operations, const struct operation_process *process,
                              const struct settled *it, const struct operation_event *event) {
    int64_t ttl_ns = event->ttl_ns ? event->ttl_ns : process->ttl_ns, until_ns;
    bool renews = it->operation->kind == OPERATION_RENEW;
    if (event->type != EVENT_OK || (!renews && it->operation->kind != OPERATION_ACQUIRE)) return INT64_MAX;
    if (renews && !ttl_ns) ttl_ns = it->holding->ttl_ns;
    it->holding->ttl_ns = ttl_ns;
    if (!ttl_ns) return INT64_MAX;
    if (!operations->ttl_least_ns || ttl_ns < operations->ttl_least_ns) operations->ttl_least_ns = ttl_ns;
    if (ttl_ns > operations->ttl_most_ns) operations->ttl_most_ns = ttl_ns;
    bool never = __builtin_add_overflow(process->called_ns, ttl_ns - CHECK_LEASE_GRAIN_NS, &until_ns);
    return never ? INT64_MAX - 1 : until_ns;
}

static bool settle(struct operations *operations, struct settled *it, const struct operation_event *event) {
    struct operation *operation = it->operation;
    if (operations_lost(operations, it, event->type)) return true;
    if (operation->kind == OPERATION_RENEW) return operations_renewed(operations, it, event->type);
    uint32_t end = operation->end;
    enum outcome outcome = event->type == EVENT_OK     ? OUTCOME_OK
                           : event->type == EVENT_FAIL ? OUTCOME_REFUSED
                                                       : OUTCOME_UNKNOWN;
    if (operation->kind == OPERATION_ACQUIRE) outcome = acquired(operations, it->holding, event->type);
    if (operation->kind == OPERATION_RELEASE) outcome = operations_released(operations, it->holding, event->type);
    it->object->ok += outcome == OUTCOME_OK;
    it->object->unknown += outcome == OUTCOME_UNKNOWN;
    operation->outcome = (uint8_t)outcome;
    if (outcome != OUTCOME_OK) return true;
    if (operation->kind == OPERATION_RELEASE) lease_over(it, event->type == EVENT_OK);
    if (operation->kind != OPERATION_ACQUIRE) return true;
    lease_over(it, false); /* a new hold, a new lease */
    return lease_from(operations, it, end);
}

/* --- events --- */

static enum take_result refuse(struct operations *operations, const char *what) {
    snprintf(operations->fault, sizeof operations->fault, "%s", what);
    return TAKE_REFUSED;
}

/* Leases of known length need the time of every event from there on, and that it never goes back. */
static const char *time_take(struct operations *operations, const struct operation_event *event) {
    if (!operations->timed && !event->ttl_ns) return NULL;
    if (!event->timed) return "a lease's length needs the time of every event that comes after it";
    if (operations->timed && event->time_ns < operations->latest_ns)
        return "its time is before that of an event above, and there are leases of known length";
    operations->timed = true;
    operations->latest_ns = event->time_ns;
    return NULL;
}

/* Has another operation of that owner an event after this one was called? */
static bool is_heard_since(const struct operations *operations, uint32_t owner, uint64_t called_at) {
    const struct operation_process *it = &operations->processes[owner];
    return it->speaker != NONE || it->heard > called_at;
}

/* Which object it is on, for whom it speaks (`owner`), and when. */
static enum take_result invoke(struct operations *operations, uint32_t index, uint32_t owner,
                               const struct operation_event *event) {
    struct operation_process *process = &operations->processes[index];
    if (process->open != NONE) return refuse(operations, "the process has another operation under way");
    uint32_t chosen = object_get(operations, event->object, process->object);
    if (chosen == NONE) return TAKE_FULL;
    struct concurrent_object *object = &operations->objects[chosen];
    if (event->timed) leases_expire(operations, object, event->time_ns);
    if (object->clock > POSITIONS_MAX) return refuse(operations, "more events than can be numbered");
    /* An acquire that names no owner may yet be granted to another one than the latest. */
    bool speaks = event->owned || event->kind != OPERATION_ACQUIRE;
    if (speaks && operations->processes[owner].speaker != NONE)
        return refuse(operations, "its owner has another operation under way");
    object->clock += 2;
    process->object = chosen;
    struct operation *operation = operation_add(operations, object);
    if (!operation) return TAKE_FULL;
    *operation = (struct operation){.value = event->value,
                                    .from = event->from,
                                    .call = object->clock - 1,
                                    .end = OPERATION_OPEN,
                                    .called_at = event->at,
                                    .returned_at = OPERATION_OPEN,
                                    .process = owner,
                                    .kind = (uint8_t)event->kind,
                                    .nameless = !speaks,
                                    .outcome = event->kind == OPERATION_RENEW ? OUTCOME_REFUSED : OUTCOME_UNKNOWN};
    process->open = (uint32_t)object->count - 1;
    process->named = event->owned;
    process->timed = event->timed;
    process->called_ns = event->time_ns;
    process->ttl_ns = event->ttl_ns;
    if (!speaks) return TAKEN;
    operations->processes[owner].speaker = index;
    operations->processes[owner].heard = (uint64_t)event->at + 1;
    return TAKEN;
}

/* The answer names the owner. */
static enum take_result answer_names_owner(struct operations *operations, const struct operation_process *process,
                                           struct operation *operation, uint32_t owner) {
    if (process->named && owner != operation->process)
        return refuse(operations, "it completes an operation of another owner");
    operations->owners_answered |= !process->named && operation->kind == OPERATION_ACQUIRE;
    bool speaks = operations->processes[owner].speaker == (uint32_t)(process - operations->processes);
    if (!speaks && is_heard_since(operations, owner, operation->called_at))
        return refuse(operations, "its owner had another operation under way");
    if (!process->named && !operation->nameless) operations->processes[operation->process].speaker = NONE;
    operation->process = owner;
    operation->nameless = false;
    return TAKEN;
}

static enum take_result complete(struct operations *operations, uint32_t index, uint32_t owner,
                                 const struct operation_event *event) {
    struct operation_process *process = &operations->processes[index];
    if (process->open == NONE) return refuse(operations, "it completes an operation that was never invoked");
    struct concurrent_object *object = &operations->objects[process->object];
    if (event->object && !operations_is_object(object, event->object))
        return refuse(operations, "it completes an operation on something else");
    if (event->timed) leases_expire(operations, object, event->time_ns);
    if (object->clock > POSITIONS_MAX) return refuse(operations, "more events than can be numbered");
    assert(process->open < object->count);
    struct operation *operation = &object->list[process->open];
    if (event->kind != operation->kind)
        return refuse(operations, "it completes another operation than the one invoked");
    if (event->owned && answer_names_owner(operations, process, operation, owner) != TAKEN) return TAKE_REFUSED;
    object->clock += 2;
    process->open = NONE;
    operation->end = object->clock - 1;
    operation->returned_at = event->at;
    operation->answer = (uint8_t)event->type;
    if (event->has_value) operation->value = event->value, operation->from = event->from;
    if (!operation->nameless) {
        operations->processes[operation->process].speaker = NONE;
        operations->processes[operation->process].heard = (uint64_t)event->at + 1;
    }
    struct settled it = {.object = object, .operation = operation};
    it.holding = holding_get(operations, &operations->processes[operation->process], process->object);
    if (!it.holding) return TAKE_FULL;
    it.until_ns = lease_until_ns(operations, process, &it, event);
    return settle(operations, &it, event) ? TAKEN : TAKE_FULL;
}

enum take_result operations_take(struct operations *operations, const struct operation_event *event) {
    if (limits_late(operations->limits)) return TAKE_FULL;
    const char *untimely = time_take(operations, event);
    if (untimely) return refuse(operations, untimely);
    uint32_t index = process_get(operations, (struct party){NULL, event->process});
    if (index == NONE) return TAKE_FULL;
    if (event->owned) {
        uint32_t owner = process_get(operations, (struct party){event->owner, event->owner_number});
        if (owner == NONE) return TAKE_FULL;
        operations->processes[index].owner = owner;
    }
    uint32_t owner = operations->processes[index].owner;
    operations->events++;
    return event->type == EVENT_INVOKE ? invoke(operations, index, owner, event)
                                       : complete(operations, index, owner, event);
}

void operations_end_process(struct operations *operations, int64_t number) {
    uint32_t index = process_find(operations, number);
    if (index == NONE) return;
    struct operation_process *process = &operations->processes[index];
    if (operations->processes[process->owner].speaker == index) operations->processes[process->owner].speaker = NONE;
    process->open = NONE;
}

bool operations_under_way(const struct operations *operations, int64_t number, enum operation_kind *kind) {
    uint32_t index = process_find(operations, number);
    if (index == NONE) return false;
    const struct operation_process *process = &operations->processes[index];
    if (process->open == NONE) return false;
    *kind = (enum operation_kind)operations->objects[process->object].list[process->open].kind;
    return true;
}

int64_t operations_process(const struct operations *operations, uint32_t process) {
    return operations->processes[process].number;
}

const char *operations_owner(const struct operations *operations, uint32_t process) {
    return operations->processes[process].word;
}

void operations_end(struct operations *operations) {
    struct limits *limits = operations->limits;
    for (size_t each = 0; each < operations->object_count; each++) {
        struct concurrent_object *object = &operations->objects[each];
        if (object->name) limits_free(limits, object->name, strlen(object->name) + 1);
        limits_free(limits, object->list, object->room * sizeof *object->list);
        limits_free(limits, object->leases, object->lease_room * sizeof *object->leases);
    }
    for (size_t each = 0; each < operations->process_count; each++) {
        struct operation_process *process = &operations->processes[each];
        limits_free(limits, process->holdings, process->holding_room * sizeof *process->holdings);
        if (process->word) limits_free(limits, process->word, strlen(process->word) + 1);
    }
    limits_free(limits, operations->objects, operations->object_room * sizeof *operations->objects);
    limits_free(limits, operations->processes, operations->process_room * sizeof *operations->processes);
    limits_free(limits, operations->table, operations->table_room * sizeof *operations->table);
}
