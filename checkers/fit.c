/* Is a history fit to be judged?
 *
 * Without these nothing can be said to hold, while what is seen to be violated stays so: somebody was granted the lock,
 * every fault was seen to take effect (one among many may be taken back, as long as another took effect), no record is
 * torn, none found the history full.
 *
 * Without these nothing can be said at all, for a checker takes them for granted: each client does one thing at a time
 * (it invokes nothing before what it invoked last has come back, and what comes back is what it had invoked); a release
 * names a grant which that client was given before; the monotonic stamps of one client never go back. They are not
 * asked for behind a torn record, which may be the very one that is missing. Of the two threads of a client only the
 * worker counts: a watchdog records nothing but `validity`, when it likes, and is looked at for none of this. A stamp
 * of 0 is none. */
#include <stdio.h>

#include "checkers/judge.h"

static bool is_invocation(uint8_t kind) {
    return kind & 1; /* from ACQUIRE_INVOKE, 5, to WRITE_RETURN, 14, in turns */
}
_Static_assert(HISTORY_ACQUIRE_INVOKE % 2 == 1 && HISTORY_ACQUIRE_RETURN == HISTORY_ACQUIRE_INVOKE + 1 &&
                   HISTORY_WRITE_INVOKE % 2 == 1 && HISTORY_WRITE_RETURN == HISTORY_WRITE_INVOKE + 1,
               "invocations are odd");

static void broken(struct judgement *judgement, const struct event *event, const char *what) {
    struct fitness *fitness = &judgement->fitness;
    char name[64];
    if (fitness->broken[0] || fitness->torn) return;
    check_name(&judgement->check, event->record->actor, name, sizeof name);
    snprintf(fitness->broken, sizeof fitness->broken, "%s %s (record %llu)", name, what,
             (unsigned long long)event->index);
}

void fit_release(struct judgement *judgement, const struct event *event) {
    const struct history_record *release = event->record;
    struct history_record grant = check_record_at(&judgement->check, release->grant);
    bool given = release->grant < event->index && grant.kind == HISTORY_ACQUIRE_RETURN && grant.outcome == OUTCOME_OK &&
                 grant.actor == release->actor;
    if (!given) broken(judgement, event, "releases under a grant that it was never given");
}

void fit_doubt(struct judgement *judgement, const struct event *event) {
    const struct history_record *record = event->record;
    const struct check_actor *actor = event->actor;
    bool numbered = record->op && actor->op;
    if (actor->name == 0) return; /* nobody knows whether these are one client's */
    if (record->mono_ns && record->mono_ns < actor->mono_ns)
        broken(judgement, event, "has a monotonic clock that went back");
    if (!actor->outstanding || !numbered) return;
    if (is_invocation(record->kind)) broken(judgement, event, "began an operation before the last one had come back");
    else if (actor->outstanding != record->kind - 1 || actor->op != record->op)
        broken(judgement, event, "was answered something else than it had asked for");
}

void fit_store_doubt(struct judgement *judgement, const struct event *event) {
    struct fitness *fitness = &judgement->fitness;
    const struct history_record *record = event->record;
    if (record->actor == 0 || record->mono_ns == 0) return;
    fitness->store = people_actor(&judgement->people, record->actor);
    if (record->mono_ns < fitness->store->mono_ns) broken(judgement, event, "has a monotonic clock that went back");
    fitness->store->mono_ns = record->mono_ns;
}

/* A proof is of the last injection of that fault into that target. */
void fit_fault(struct judgement *judgement, const struct history_record *record) {
    struct check_table *faults = &judgement->fitness.faults;
    if (record->kind == HISTORY_FAULT_INJECT) {
        struct fault_seen *fault = check_table_add(faults, record->name);
        fault->target = record->value;
        return;
    }
    for (size_t each = faults->count; each-- > 0;) {
        struct fault_seen *fault = (struct fault_seen *)faults->entries + each;
        if (fault->name != record->name || fault->target != record->value) continue;
        fault->proved |= record->outcome == OUTCOME_OK;
        fault->taken_back |= record->outcome == OUTCOME_REFUSED;
        return;
    }
}

/* Whether a fault is in doubt: one that was neither seen to take effect nor taken back, or all of them. */
static bool faults_fail(const struct judgement *judgement, char *text, size_t size) {
    const struct fitness *fitness = &judgement->fitness;
    const struct fault_seen *fault = fitness->faults.entries;
    size_t count = fitness->faults.count;
    bool proved = false;
    char name[64];
    for (size_t each = 0; each < count; each++, fault++) {
        proved |= fault->proved;
        if (fault->proved || fault->taken_back) continue;
        snprintf(text, size, "the fault %s was not seen to take effect",
                 check_name(&judgement->check, fault->name, name, sizeof name));
        return true;
    }
    if (proved || (count == 0 && fitness->faults_meant <= 0)) return false;
    snprintf(text, size, "none of the faults was seen to take effect");
    return true;
}

bool fit_end(const struct judgement *judgement, char *text, size_t size) {
    const struct fitness *fitness = &judgement->fitness;
    if (fitness->broken[0]) {
        snprintf(text, size, "%s", fitness->broken);
        return true;
    }
    if (fitness->records == 0) snprintf(text, size, "the history is empty");
    else if (fitness->dropped) snprintf(text, size, "%llu records found no room", (unsigned long long)fitness->dropped);
    else if (fitness->torn) snprintf(text, size, "%llu records are torn", (unsigned long long)fitness->torn);
    else if (!faults_fail(judgement, text, size) && judgement->check.granted == 0)
        snprintf(text, size, "nobody was granted the lock");
    return false;
}
