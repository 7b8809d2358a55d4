#include "checkers/engine/assumptions.h"

#include <stdio.h>

_Static_assert(HISTORY_ACQUIRE_INVOKE % 2 == 1 && HISTORY_ACQUIRE_RETURN == HISTORY_ACQUIRE_INVOKE + 1 &&
                   HISTORY_WRITE_INVOKE % 2 == 1 && HISTORY_WRITE_RETURN == HISTORY_WRITE_INVOKE + 1,
               "invocations are odd");

static void broken(struct assumptions *assumptions, const struct event *event, const char *what) {
    char name[64];
    if (assumptions->broken[0] || assumptions->torn) return;
    history_name(assumptions->check->reader, event->record->actor, name, sizeof name);
    snprintf(assumptions->broken, sizeof assumptions->broken, "%s %s (record %llu)", name, what,
             (unsigned long long)event->index);
}

void assumptions_release(struct assumptions *assumptions, const struct event *event) {
    const struct history_record *release = event->record;
    struct history_record grant = check_record_at(assumptions->check, release->grant);
    bool given = release->grant < event->index && grant.kind == HISTORY_ACQUIRE_RETURN && grant.outcome == OUTCOME_OK &&
                 grant.actor == release->actor;
    if (!given) broken(assumptions, event, "releases under a grant that it was never given");
    else if (grant.name != release->name) broken(assumptions, event, "releases under a grant of another lock");
}

void assumptions_doubt(struct assumptions *assumptions, const struct event *event) {
    const struct history_record *record = event->record;
    const struct check_actor *actor = event->actor;
    bool numbered = record->op && actor->op;
    if (actor->name == 0) return; /* records without a name may be of several clients */
    if (record->mono_ns && record->mono_ns < actor->mono_ns)
        broken(assumptions, event, "has a monotonic clock that went back");
    if (!actor->outstanding || !numbered) return;
    if (record->kind % 2 == 1) broken(assumptions, event, "began an operation before the last one had come back");
    else if (actor->outstanding != record->kind - 1 || actor->op != record->op)
        broken(assumptions, event, "was answered something else than it had asked for");
}

void assumptions_doubt_store(struct assumptions *assumptions, const struct event *event) {
    const struct history_record *record = event->record;
    if (record->actor == 0 || record->mono_ns == 0) return;
    assumptions->store = participants_actor(assumptions->participants, record->actor);
    if (record->mono_ns < assumptions->store->mono_ns)
        broken(assumptions, event, "has a monotonic clock that went back");
    assumptions->store->mono_ns = record->mono_ns;
}

/* A proof belongs to the latest injection of that fault into that target. */
void assumptions_fault(struct assumptions *assumptions, const struct history_record *record) {
    struct check_table *faults = &assumptions->faults;
    if (record->kind == HISTORY_FAULT_INJECT) {
        struct recorded_fault *fault = check_table_add(faults, record->name);
        fault->target = record->value;
        return;
    }
    for (size_t each = faults->count; each-- > 0;) {
        struct recorded_fault *fault = (struct recorded_fault *)faults->entries + each;
        if (fault->name != record->name || fault->target != record->value) continue;
        fault->proved |= record->outcome == OUTCOME_OK;
        fault->taken_back |= record->outcome == OUTCOME_REFUSED;
        return;
    }
}

/* In doubt is a fault that was neither seen to take effect nor taken back, or all of them. */
static bool faults_fail(const struct assumptions *assumptions, char *reason, size_t size) {
    const struct recorded_fault *fault = assumptions->faults.entries;
    size_t count = assumptions->faults.count;
    bool proved = false;
    char name[64];
    for (size_t each = 0; each < count; each++, fault++) {
        proved |= fault->proved;
        if (fault->proved || fault->taken_back) continue;
        snprintf(reason, size, "the fault %s was not seen to take effect",
                 history_name(assumptions->check->reader, fault->name, name, sizeof name));
        return true;
    }
    if (proved || (count == 0 && assumptions->faults_meant <= 0)) return false;
    snprintf(reason, size, "none of the faults was seen to take effect");
    return true;
}

bool assumptions_end(const struct assumptions *assumptions, char *reason, size_t size) {
    if (assumptions->broken[0]) {
        snprintf(reason, size, "%s", assumptions->broken);
        return true;
    }
    if (assumptions->records == 0) snprintf(reason, size, "the history is empty");
    else if (assumptions->dropped)
        snprintf(reason, size, "%llu records found no room", (unsigned long long)assumptions->dropped);
    else if (assumptions->torn) snprintf(reason, size, "%llu records are torn", (unsigned long long)assumptions->torn);
    else if (!faults_fail(assumptions, reason, size) && assumptions->check->granted == 0)
        snprintf(reason, size, "nobody was granted the lock");
    return false;
}
