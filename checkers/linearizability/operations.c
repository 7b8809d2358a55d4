#include "checkers/linearizability/operations.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/engine/hash.h"

enum { NONE = UINT32_MAX, POSITIONS_MAX = UINT32_MAX - 8 };

/* A process. It does one operation at a time. */
struct operation_process {
    int64_t number;
    uint32_t object; /* of the operation under way, or of the latest one */
    uint32_t open;   /* the operation under way; NONE */
    struct holding *holdings;
    uint32_t holding_count, holding_room;
};

/* What a process knows of its hold of an object. */
struct holding {
    uint32_t object;
    uint32_t grants; /* that it has not released, as far as it knows */
    uint32_t lease;  /* the operation that stands for the end of its lease; NONE */
};

const char *const EVENT_TYPE[] = {"invoke", "ok", "fail", "info", NULL};

const char *operation_kind_name(enum operation_kind kind) {
    static const char *const names[OPERATION_KIND_COUNT] = {"acquire", "release", "renew", "read", "write", "cas"};
    return names[kind];
}

void operations_begin(struct operations *operations, struct limits *limits, const struct policies *policies) {
    *operations = (struct operations){.limits = limits, .policies = *policies};
}

/* --- processes and objects --- */

static bool operations_table_grow(struct operations *operations) {
    size_t room = operations->table_room ? operations->table_room * 2 : 64;
    uint32_t *table = limits_resize(operations->limits, NULL, 0, room * sizeof *table);
    if (!table) return false;
    memset(table, 0xff, room * sizeof *table);
    for (uint32_t each = 0; each < operations->process_count; each++) {
        size_t place = hash_mix(0, (uint64_t)operations->processes[each].number) & (room - 1);
        while (table[place] != NONE) place = (place + 1) & (room - 1);
        table[place] = each;
    }
    limits_free(operations->limits, operations->table, operations->table_room * sizeof *table);
    operations->table = table;
    operations->table_room = room;
    return true;
}

/* The slot of its entry, or the free one where it would be. */
static uint32_t *process_slot(const struct operations *operations, int64_t number) {
    size_t mask = operations->table_room - 1, place = hash_mix(0, (uint64_t)number) & mask;
    while (operations->table[place] != NONE && operations->processes[operations->table[place]].number != number)
        place = (place + 1) & mask;
    return &operations->table[place];
}

static uint32_t process_find(const struct operations *operations, int64_t number) {
    return operations->table_room ? *process_slot(operations, number) : NONE;
}

/* Adds a process that is not there yet. NONE: a limit is reached. */
static uint32_t process_get(struct operations *operations, int64_t number) {
    if (2 * operations->process_count >= operations->table_room && !operations_table_grow(operations)) return NONE;
    uint32_t *slot = process_slot(operations, number);
    if (*slot != NONE) return *slot;
    if (!limits_more(operations->limits, operations->processes, operations->process_count, operations->process_room))
        return NONE;
    *slot = (uint32_t)operations->process_count++;
    operations->processes[*slot] = (struct operation_process){.number = number, .open = NONE};
    return *slot;
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
    size_t bytes = name ? strlen(name) + 1 : 0;
    char *copy = name ? limits_resize(operations->limits, NULL, 0, bytes) : NULL;
    if (name && !copy) return NONE;
    if (name) memcpy(copy, name, bytes);
    operations->objects[operations->object_count] = (struct concurrent_object){.name = copy};
    return (uint32_t)operations->object_count++;
}

static struct holding *holding_get(struct operations *operations, struct operation_process *process) {
    for (uint32_t each = 0; each < process->holding_count; each++)
        if (process->holdings[each].object == process->object) return &process->holdings[each];
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
    *holding = (struct holding){.object = process->object, .lease = NONE};
    return holding;
}

/* --- what a completion means --- */

/* The caller fills it in. */
static struct operation *operation_add(struct operations *operations, struct concurrent_object *object) {
    if (!limits_more(operations->limits, object->list, object->count, object->room)) return NULL;
    return &object->list[object->count++];
}

/* From `position` on - the time of the grant's return, or of the call of what renewed it - the hold may end by itself.
 */
static bool lease_from(struct operations *operations, struct operation_process *process, struct holding *holding,
                       uint32_t position) {
    struct concurrent_object *object = &operations->objects[process->object];
    if (!operations->policies.leases || operations->policies.owned) return true;
    if (holding->lease == NONE) {
        struct operation *operation = operation_add(operations, object);
        if (!operation) return false;
        *operation = (struct operation){.value = OPERATION_NIL,
                                        .from = OPERATION_NIL,
                                        .end = OPERATION_OPEN,
                                        .returned_at = OPERATION_OPEN,
                                        .process = (uint32_t)(process - operations->processes),
                                        .kind = OPERATION_RELEASE};
        holding->lease = (uint32_t)object->count - 1;
    }
    object->list[holding->lease].call = position + 1; /* between this event and the next */
    return true;
}

/* The hold is over. If its release was answered ok, the end of its lease cannot have ended it. */
static void lease_over(struct operations *operations, struct operation_process *process, struct holding *holding,
                       bool released) {
    if (holding->lease != NONE && released)
        operations->objects[process->object].list[holding->lease].outcome = OUTCOME_REFUSED;
    holding->lease = NONE;
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
static bool operations_renewed(struct operations *operations, struct operation_process *process,
                               struct holding *holding, struct operation *operation,
                               const struct operation_event *event) {
    if (event->type != EVENT_OK) return true;
    if (!operations->policies.owned)
        return holding->lease == NONE || lease_from(operations, process, holding, operation->call);
    operation->outcome = OUTCOME_OK;
    operations->objects[process->object].ok++;
    return true;
}

static bool settle(struct operations *operations, struct operation_process *process, struct operation *operation,
                   const struct operation_event *event) {
    struct holding *holding = holding_get(operations, process);
    if (!holding) return false;
    if (operation->kind == OPERATION_RENEW) return operations_renewed(operations, process, holding, operation, event);
    uint32_t end = operation->end;
    enum outcome outcome = event->type == EVENT_OK     ? OUTCOME_OK
                           : event->type == EVENT_FAIL ? OUTCOME_REFUSED
                                                       : OUTCOME_UNKNOWN;
    if (operation->kind == OPERATION_ACQUIRE) outcome = acquired(operations, holding, event->type);
    if (operation->kind == OPERATION_RELEASE) outcome = operations_released(operations, holding, event->type);
    struct concurrent_object *object = &operations->objects[process->object];
    object->ok += outcome == OUTCOME_OK;
    object->unknown += outcome == OUTCOME_UNKNOWN;
    operation->outcome = (uint8_t)outcome;
    if (outcome != OUTCOME_OK) return true;
    if (operation->kind == OPERATION_RELEASE) lease_over(operations, process, holding, event->type == EVENT_OK);
    if (operation->kind != OPERATION_ACQUIRE) return true;
    lease_over(operations, process, holding, false); /* a new hold, a new lease */
    return lease_from(operations, process, holding, end);
}

/* --- events --- */

static enum take_result refuse(struct operations *operations, const char *what) {
    snprintf(operations->fault, sizeof operations->fault, "%s", what);
    return TAKE_REFUSED;
}

static enum take_result invoke(struct operations *operations, struct operation_process *process,
                               const struct operation_event *event) {
    if (process->open != NONE) return refuse(operations, "the process has another operation under way");
    uint32_t chosen = object_get(operations, event->object, process->object);
    if (chosen == NONE) return TAKE_FULL;
    struct concurrent_object *object = &operations->objects[chosen];
    if (object->clock > POSITIONS_MAX) return refuse(operations, "more events than can be numbered");
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
                                    .process = (uint32_t)(process - operations->processes),
                                    .kind = (uint8_t)event->kind,
                                    .outcome = event->kind == OPERATION_RENEW ? OUTCOME_REFUSED : OUTCOME_UNKNOWN};
    process->open = (uint32_t)object->count - 1;
    return TAKEN;
}

static enum take_result complete(struct operations *operations, struct operation_process *process,
                                 const struct operation_event *event) {
    if (process->open == NONE) return refuse(operations, "it completes an operation that was never invoked");
    struct concurrent_object *object = &operations->objects[process->object];
    if (event->object && !operations_is_object(object, event->object))
        return refuse(operations, "it completes an operation on something else");
    if (object->clock > POSITIONS_MAX) return refuse(operations, "more events than can be numbered");
    assert(process->open < object->count);
    struct operation *operation = &object->list[process->open];
    if (event->kind != operation->kind)
        return refuse(operations, "it completes another operation than the one invoked");
    object->clock += 2;
    process->open = NONE;
    operation->end = object->clock - 1;
    operation->returned_at = event->at;
    operation->answer = (uint8_t)event->type;
    if (event->has_value) operation->value = event->value, operation->from = event->from;
    return settle(operations, process, operation, event) ? TAKEN : TAKE_FULL;
}

enum take_result operations_take(struct operations *operations, const struct operation_event *event) {
    if (limits_late(operations->limits)) return TAKE_FULL;
    uint32_t index = process_get(operations, event->process);
    if (index == NONE) return TAKE_FULL;
    struct operation_process *process = &operations->processes[index];
    operations->events++;
    return event->type == EVENT_INVOKE ? invoke(operations, process, event) : complete(operations, process, event);
}

void operations_end_process(struct operations *operations, int64_t number) {
    uint32_t index = process_find(operations, number);
    if (index == NONE) return;
    operations->processes[index].open = NONE;
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

void operations_end(struct operations *operations) {
    struct limits *limits = operations->limits;
    for (size_t each = 0; each < operations->object_count; each++) {
        struct concurrent_object *object = &operations->objects[each];
        if (object->name) limits_free(limits, object->name, strlen(object->name) + 1);
        limits_free(limits, object->list, object->room * sizeof *object->list);
    }
    for (size_t each = 0; each < operations->process_count; each++) {
        struct operation_process *process = &operations->processes[each];
        limits_free(limits, process->holdings, process->holding_room * sizeof *process->holdings);
    }
    limits_free(limits, operations->objects, operations->object_room * sizeof *operations->objects);
    limits_free(limits, operations->processes, operations->process_room * sizeof *operations->processes);
    limits_free(limits, operations->table, operations->table_room * sizeof *operations->table);
}
