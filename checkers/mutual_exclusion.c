/* Mutual exclusion: did more clients believe that they held the lock at once than it has room for?
 *
 * A client believes from its ACQUIRE_RETURN (ok) up to its RELEASE_INVOKE, both in index order, or until the stamp at
 * which the lock itself stops believing (it may be told a later or an earlier one meanwhile), or until its process has
 * ended. Two beliefs overlap when one begins while another has not ended; the release is stamped before it is sent and
 * the grant after it came back, so a correct lock can never look wrong. One violation per grant that found the room
 * full.
 *
 * A grant to a client that believes already begins no other belief; the stamp that came last counts. It takes as many
 * releases as grants to end that of a re-entrant lock, and one to end any other. */
#include <stdio.h>
#include <stdlib.h>

#include "checkers/checker.h"

extern const struct checker CHECKER_MUTUAL_EXCLUSION;

struct hold {
    uint32_t actor; /* key */
    uint32_t depth; /* of a re-entrant lock */
    uint64_t grant;
    int64_t token, mono_ns, valid_until_ns;
};

struct lock {
    uint32_t name; /* key */
    bool reentrant;
    int64_t capacity;
    struct check_table holds;
};

struct mutual_exclusion {
    const struct check *check;
    struct check_table locks;
    uint64_t grants;
    struct verdict verdict;
};

static struct lock *lock_get(struct mutual_exclusion *self, uint32_t name) {
    struct lock *lock = check_table_get(&self->locks, name);
    if (lock->capacity == 0) {
        lock->capacity = 1;
        lock->holds.size = sizeof(struct hold);
    }
    return lock;
}

static void drop_expired(struct lock *lock, int64_t mono_ns) {
    for (size_t each = lock->holds.count; each-- > 0;) {
        struct hold *hold = (struct hold *)lock->holds.entries + each;
        if (hold->valid_until_ns && hold->valid_until_ns <= mono_ns) check_table_remove(&lock->holds, hold);
    }
}

/* The grants of the holders, as many as there is room for, and the one that was too much. */
static void describe(struct mutual_exclusion *self, const struct lock *lock, const struct history_record *record,
                     uint64_t index) {
    char first[64], second[64], after[32], first_token[32] = "", second_token[32] = "";
    uint64_t records[EVIDENCE_RECORDS];
    int shown = 0;
    const struct hold *old = lock->holds.entries;
    for (size_t each = 0; each < lock->holds.count && shown < EVIDENCE_RECORDS - 1; each++)
        if (shown < lock->capacity) records[shown++] = old[each].grant;
    records[shown++] = index;
    struct evidence *evidence = verdict_evidence(&self->verdict, records, shown);
    if (!evidence) return;
    if (old->token) snprintf(first_token, sizeof first_token, " (token %lld)", (long long)old->token);
    if (record->token) snprintf(second_token, sizeof second_token, " (token %lld)", (long long)record->token);
    snprintf(evidence->text, sizeof evidence->text,
             "%s%s was granted the lock %s after %s%s, which had not released it and still believed in it",
             check_name(self->check, record->actor, second, sizeof second), second_token,
             check_duration(record->mono_ns - old->mono_ns, after, sizeof after),
             check_name(self->check, old->actor, first, sizeof first), first_token);
}

static void granted(struct mutual_exclusion *self, const struct history_record *record, uint64_t index) {
    struct lock *lock = lock_get(self, record->name);
    self->grants++;
    drop_expired(lock, record->mono_ns);
    struct hold *hold = check_table_find(&lock->holds, record->actor);
    if (hold && lock->reentrant) {
        hold->depth++;
        hold->valid_until_ns = record->value;
        return;
    }
    if (!hold && (int64_t)lock->holds.count >= lock->capacity) {
        self->verdict.count++;
        describe(self, lock, record, index);
    }
    hold = check_table_get(&lock->holds, record->actor);
    *hold = (struct hold){record->actor, 1, index, record->token, record->mono_ns, record->value};
}

static void let_go(struct lock *lock, uint32_t actor, bool all) {
    struct hold *hold = check_table_find(&lock->holds, actor);
    if (hold && (all || --hold->depth == 0)) check_table_remove(&lock->holds, hold);
}

static void told_validity(struct lock *lock, const struct history_record *record) {
    struct hold *hold = check_table_find(&lock->holds, record->actor);
    if (hold) hold->valid_until_ns = record->value;
}

static void *open(const struct check *check) {
    struct mutual_exclusion *self = calloc(1, sizeof *self);
    if (!self) abort();
    self->check = check;
    self->locks.size = sizeof(struct lock);
    return self;
}

static void take(void *state, const struct history_record *record, uint64_t index) {
    struct mutual_exclusion *self = state;
    if (record->kind == HISTORY_ACQUIRE_RETURN && record->outcome == OUTCOME_OK) {
        granted(self, record, index);
    } else if (record->kind == HISTORY_RELEASE_INVOKE) {
        let_go(lock_get(self, record->name), record->actor, false);
    } else if (record->kind == HISTORY_VALIDITY) {
        told_validity(lock_get(self, record->name), record);
    } else if (record->kind == HISTORY_LOCK_OPEN) {
        struct lock *lock = lock_get(self, record->name);
        lock->reentrant = record->extra & CHECK_TRAIT_REENTRANT;
        if (record->token > 0) lock->capacity = record->token;
    } else if (record->kind == HISTORY_ACTOR_EXIT) {
        for (size_t each = 0; each < self->locks.count; each++)
            let_go((struct lock *)self->locks.entries + each, record->name, true);
    }
}

static void finish(void *state, struct verdict *verdict) {
    struct mutual_exclusion *self = state;
    *verdict = self->verdict;
    verdict->applies = true;
    verdict->status = verdict->count ? VERDICT_VIOLATED : self->grants ? VERDICT_HOLDS : VERDICT_INCONCLUSIVE;
    if (verdict->status == VERDICT_INCONCLUSIVE)
        snprintf(verdict->reason, sizeof verdict->reason, "nobody was granted the lock");
    for (size_t each = 0; each < self->locks.count; each++)
        check_table_free(&((struct lock *)self->locks.entries + each)->holds);
    check_table_free(&self->locks);
    free(self);
}

const struct checker CHECKER_MUTUAL_EXCLUSION = {
    .property = "mutual_exclusion",
    .title = "mutual exclusion",
    .question = "did two clients believe that they held the lock at once?",
    .open = open,
    .record = take,
    .finish = finish,
};
