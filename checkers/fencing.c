/* Fencing: are tokens unique per grant, do they rise in grant order, was every stale access rejected?
 *
 * Rise: the token of a grant is larger than that of every grant that had returned before this acquire was invoked. Two
 * acquires that were in flight together may come back in either order - the history knows when a client learned of its
 * grant, not when the server gave it. Unique: no two grants carry the same token, whenever they were in flight. A grant
 * to a client that has not released a re-entrant lock may repeat its token, as long as no newer one had come back.
 *
 * Stale access: a read or write with a token older than that of an access which the store had accepted before. */
#include <stdio.h>
#include <stdlib.h>

#include "checkers/checker.h"

extern const struct checker CHECKER_FENCING;

/* A grant. */
struct issued {
    uint32_t key;
    int64_t token;
    uint64_t index;
};

/* An acquire in flight. */
struct pending {
    uint32_t actor; /* key */
    uint64_t invoked;
    struct issued floor; /* the newest that had come back by then */
};

/* Who holds a re-entrant lock. */
struct held {
    uint32_t actor; /* key */
    uint32_t depth;
    int64_t token;
};

struct lock {
    uint32_t name; /* key */
    bool tokens;   /* it says that it gives them */
    bool reentrant;
    struct issued newest;
    struct check_table pending, held;
    struct check_table issued; /* grants that some acquire in flight may still repeat */
};

struct fencing {
    const struct check *check;
    struct check_table locks;
    bool applies;
    uint64_t grants;
    int64_t seen_token; /* newest in an accepted access */
    uint64_t seen_index;
    uint32_t seen_actor;
    struct verdict verdict;
};

static struct lock *lock_get(struct fencing *self, uint32_t name) {
    struct lock *lock = check_table_get(&self->locks, name);
    lock->pending.size = sizeof(struct pending);
    lock->issued.size = sizeof(struct issued);
    lock->held.size = sizeof(struct held);
    return lock;
}

static void violate(struct fencing *self, const struct history_record *record, uint64_t earlier, uint64_t index,
                    const char *what, int64_t other) {
    char actor[64];
    self->verdict.count++;
    const uint64_t records[] = {earlier, index};
    bool alone = earlier == 0; /* slot 0 is never a grant */
    struct evidence *evidence = verdict_evidence(&self->verdict, alone ? records + 1 : records, alone ? 1 : 2);
    if (!evidence) return;
    snprintf(evidence->text, sizeof evidence->text, "%s was granted token %lld%s %lld",
             check_name(self->check, record->actor, actor, sizeof actor), (long long)record->token, what,
             (long long)other);
}

/* Grants that no acquire in flight can repeat any more are forgotten. */
static void issued_forget(struct lock *lock) {
    uint64_t oldest = UINT64_MAX;
    for (size_t each = 0; each < lock->pending.count; each++) {
        const struct pending *pending = (const struct pending *)lock->pending.entries + each;
        if (pending->invoked < oldest) oldest = pending->invoked;
    }
    for (size_t each = lock->issued.count; each-- > 0;) {
        struct issued *issued = (struct issued *)lock->issued.entries + each;
        if (issued->index < oldest) check_table_remove(&lock->issued, issued);
    }
}

static const struct issued *issued_find(const struct lock *lock, int64_t token) {
    for (size_t each = 0; each < lock->issued.count; each++) {
        const struct issued *issued = (const struct issued *)lock->issued.entries + each;
        if (issued->token == token) return issued;
    }
    return NULL;
}

/* Notes a grant of a re-entrant lock. True: it repeats the token of a hold that stands. */
static bool held_repeats(struct lock *lock, const struct history_record *record) {
    struct held *held = check_table_get(&lock->held, record->actor);
    bool repeats = held->depth && held->token == record->token;
    *held = (struct held){record->actor, held->depth + 1, record->token};
    return repeats;
}

static void let_go(struct lock *lock, uint32_t actor, bool all) {
    struct held *held = check_table_find(&lock->held, actor);
    if (held && (all || --held->depth == 0)) check_table_remove(&lock->held, held);
}

static void granted(struct fencing *self, struct lock *lock, const struct history_record *record, struct issued floor,
                    uint64_t index) {
    bool repeats = lock->reentrant && held_repeats(lock, record);
    if (record->token == 0 && !lock->tokens) return;
    const struct issued *same = issued_find(lock, record->token);
    self->grants++;
    if (repeats && record->token && record->token >= floor.token) return; /* nothing new was given out */
    if (record->token == 0) {
        violate(self, record, 0, index, ", that is none; the newest before was", lock->newest.token);
    } else if (same) {
        violate(self, record, same->index, index, ", which was given out before; the newest was", lock->newest.token);
    } else if (record->token <= floor.token) {
        violate(self, record, floor.index, index,
                ", not newer than one that had come back before it was asked for:", floor.token);
    }
    struct issued *issued = check_table_add(&lock->issued, (uint32_t)index);
    *issued = (struct issued){(uint32_t)index, record->token, index};
    if (record->token > lock->newest.token) lock->newest = *issued;
}

static void returned(struct fencing *self, const struct history_record *record, uint64_t index) {
    struct lock *lock = lock_get(self, record->name);
    struct pending *pending = check_table_find(&lock->pending, record->actor);
    struct issued floor = pending ? pending->floor : lock->newest;
    if (pending) check_table_remove(&lock->pending, pending);
    self->applies |= record->token != 0;
    if (record->outcome == OUTCOME_OK) granted(self, lock, record, floor, index);
    issued_forget(lock);
}

static void accessed(struct fencing *self, const struct history_record *record, uint64_t index) {
    char late[64], early[64];
    self->applies |= record->token != 0;
    if (record->outcome == OUTCOME_REFUSED) self->verdict.stopped++;
    if (record->outcome != OUTCOME_OK || record->token == 0) return;
    if (record->token >= self->seen_token) {
        self->seen_token = record->token;
        self->seen_index = index;
        self->seen_actor = record->name;
        return;
    }
    self->verdict.count++;
    struct evidence *evidence = verdict_evidence(&self->verdict, (const uint64_t[]){self->seen_index, index}, 2);
    if (!evidence) return;
    snprintf(evidence->text, sizeof evidence->text,
             "the store accepted a stale %s: %s came with token %lld after %s with token %lld",
             record->kind == HISTORY_STORE_WRITE ? "write" : "read",
             check_name(self->check, record->name, late, sizeof late), (long long)record->token,
             check_name(self->check, self->seen_actor, early, sizeof early), (long long)self->seen_token);
}

static void *open(const struct check *check) {
    struct fencing *self = calloc(1, sizeof *self);
    if (!self) abort();
    self->check = check;
    self->locks.size = sizeof(struct lock);
    return self;
}

static void take(void *state, const struct history_record *record, uint64_t index) {
    struct fencing *self = state;
    if (record->kind == HISTORY_STORE_READ || record->kind == HISTORY_STORE_WRITE) {
        accessed(self, record, index);
    } else if (record->kind == HISTORY_ACQUIRE_INVOKE) {
        struct lock *lock = lock_get(self, record->name);
        struct pending *pending = check_table_get(&lock->pending, record->actor);
        *pending = (struct pending){record->actor, index, lock->newest};
    } else if (record->kind == HISTORY_ACQUIRE_RETURN) {
        returned(self, record, index);
    } else if (record->kind == HISTORY_LOCK_OPEN) {
        struct lock *lock = lock_get(self, record->name);
        lock->tokens = record->extra & CHECK_TRAIT_TOKEN;
        lock->reentrant = record->extra & CHECK_TRAIT_REENTRANT;
        self->applies |= lock->tokens;
    } else if (record->kind == HISTORY_RELEASE_INVOKE) {
        let_go(lock_get(self, record->name), record->actor, false);
    } else if (record->kind == HISTORY_ACTOR_EXIT) {
        for (size_t each = 0; each < self->locks.count; each++)
            let_go((struct lock *)self->locks.entries + each, record->name, true);
    }
}

static void finish(void *state, struct verdict *verdict) {
    struct fencing *self = state;
    *verdict = self->verdict;
    verdict->applies = self->applies;
    verdict->status = verdict->count ? VERDICT_VIOLATED : self->grants ? VERDICT_HOLDS : VERDICT_INCONCLUSIVE;
    if (verdict->status == VERDICT_INCONCLUSIVE)
        snprintf(verdict->reason, sizeof verdict->reason,
                 self->applies ? "nobody was granted a token" : "the lock gives no fencing token");
    for (size_t each = 0; each < self->locks.count; each++) {
        check_table_free(&((struct lock *)self->locks.entries + each)->pending);
        check_table_free(&((struct lock *)self->locks.entries + each)->issued);
        check_table_free(&((struct lock *)self->locks.entries + each)->held);
    }
    check_table_free(&self->locks);
    free(self);
}

const struct checker CHECKER_FENCING = {
    .property = "fencing",
    .title = "fencing",
    .question = "are tokens unique and rising, and was every stale access rejected?",
    .open = open,
    .record = take,
    .finish = finish,
};
