/* Integrity: did the store accept a write older than one it had accepted, or lose an acknowledged update?
 *
 * Stale write: an accepted write whose grant is older than that of an accepted write before it, in the store's order.
 * Grants are ordered by token, then by their index in the history; a write without a grant is not compared.
 *
 * Lost update: an accepted write that was computed from version b overwrites the accepted writes b+1 .. v before it,
 * none of which its writer had seen. Each of these counts once, and only if its own writer was told that it had
 * succeeded (an update whose outcome its writer does not know may as well not have happened). Writes that the store
 * itself computes (ADD) lose nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "checkers/checker.h"

extern const struct checker CHECKER_INTEGRITY;

/* An accepted write whose writer has not been told yet. */
struct unacknowledged {
    uint32_t key; /* of no use here */
    uint32_t actor, op;
    bool lost;
    int64_t version;
};

struct object {
    int64_t version;    /* accepted writes so far */
    int64_t lost_up_to; /* up to this version every loss has been counted */
    uint64_t last;      /* index of the last accepted write */
    uint32_t last_actor;
    struct check_table unacknowledged;
};

struct integrity {
    const struct check *check;
    struct object objects[HISTORY_OBJECT_COUNT];
    int64_t newest_token;
    uint32_t newest_grant;
    uint64_t newest_write, accesses, stale_writes, lost_updates;
    uint32_t newest_actor;
    struct verdict verdict;
};

static bool is_stale(const struct integrity *self, const struct history_record *record) {
    if (record->grant == 0 || self->newest_grant == 0) return false;
    if (record->token && self->newest_token && record->token != self->newest_token)
        return record->token < self->newest_token;
    return record->grant < self->newest_grant;
}

static void check_order(struct integrity *self, const struct history_record *record, uint64_t index) {
    char late[64], early[64];
    if (is_stale(self, record)) {
        self->stale_writes++;
        struct evidence *evidence = verdict_evidence(
            &self->verdict, (const uint64_t[]){record->grant, self->newest_grant, self->newest_write, index}, 4);
        if (evidence)
            snprintf(evidence->text, sizeof evidence->text,
                     "the store accepted a stale write: %s wrote %s = %lld under an older grant, after %s had written "
                     "under a newer one",
                     check_name(self->check, record->name, late, sizeof late), history_object_name(record->object),
                     (long long)record->value, check_name(self->check, self->newest_actor, early, sizeof early));
    } else if (record->grant) {
        self->newest_grant = record->grant;
        self->newest_token = record->token;
        self->newest_write = index;
        self->newest_actor = record->name;
    }
}

/* How many of the versions in (from, to] are acknowledged; the others are marked, should the word still come. */
static int64_t count_lost(struct object *object, int64_t from, int64_t to) {
    int64_t lost = to - from;
    for (size_t each = 0; each < object->unacknowledged.count; each++) {
        struct unacknowledged *pending = (struct unacknowledged *)object->unacknowledged.entries + each;
        if (pending->version <= from || pending->version > to) continue;
        pending->lost = true;
        lost--;
    }
    return lost;
}

static void check_loss(struct integrity *self, const struct history_record *record, uint64_t index) {
    struct object *object = &self->objects[record->object];
    int64_t from = record->extra > object->lost_up_to ? record->extra : object->lost_up_to;
    bool blind = record->extra < 0 || (record->flags & HISTORY_FLAG_ATOMIC);
    if (blind || from >= object->version) return;
    int64_t lost = count_lost(object, from, object->version);
    object->lost_up_to = object->version;
    self->lost_updates += (uint64_t)lost;
    char writer[64], loser[64];
    struct evidence *evidence =
        lost ? verdict_evidence(&self->verdict, (const uint64_t[]){object->last, index}, 2) : NULL;
    if (!evidence) return;
    snprintf(evidence->text, sizeof evidence->text,
             "lost update: %s wrote %s = %lld from version %lld, over version %lld by %s, which it had not seen (%lld "
             "acknowledged update%s gone)",
             check_name(self->check, record->name, writer, sizeof writer), history_object_name(record->object),
             (long long)record->value, (long long)record->extra, (long long)object->version,
             check_name(self->check, object->last_actor, loser, sizeof loser), (long long)lost, lost == 1 ? "" : "s");
}

static void accepted(struct integrity *self, const struct history_record *record, uint64_t index) {
    struct object *object = &self->objects[record->object];
    object->unacknowledged.size = sizeof(struct unacknowledged);
    check_order(self, record, index);
    check_loss(self, record, index);
    object->version++;
    object->last = index;
    object->last_actor = record->name;
    if (record->op == 0) return; /* a stranger: told, as far as we know */
    struct unacknowledged *pending = check_table_add(&object->unacknowledged, (uint32_t)object->version);
    *pending = (struct unacknowledged){(uint32_t)object->version, record->name, record->op, false, object->version};
}

static void acknowledged(struct integrity *self, const struct history_record *record) {
    struct object *object = &self->objects[record->object];
    for (size_t each = object->unacknowledged.count; each-- > 0;) {
        struct unacknowledged *pending = (struct unacknowledged *)object->unacknowledged.entries + each;
        if (pending->actor != record->actor || pending->op != record->op) continue;
        self->lost_updates += pending->lost;
        check_table_remove(&object->unacknowledged, pending);
        return;
    }
}

static void *open(const struct check *check) {
    struct integrity *self = calloc(1, sizeof *self);
    if (!self) abort();
    self->check = check;
    return self;
}

static void take(void *state, const struct history_record *record, uint64_t index) {
    struct integrity *self = state;
    if (record->object == HISTORY_OBJECT_NONE || record->object >= HISTORY_OBJECT_COUNT) return;
    if (record->kind == HISTORY_STORE_WRITE || record->kind == HISTORY_STORE_READ) {
        self->accesses++;
        if (record->kind == HISTORY_STORE_WRITE && record->outcome == OUTCOME_OK) accepted(self, record, index);
        if (record->kind == HISTORY_STORE_WRITE && record->outcome == OUTCOME_REFUSED) self->verdict.stopped++;
    } else if (record->kind == HISTORY_WRITE_RETURN && record->outcome == OUTCOME_OK) {
        acknowledged(self, record);
    }
}

static void finish(void *state, struct verdict *verdict) {
    struct integrity *self = state;
    *verdict = self->verdict;
    verdict->applies = true;
    verdict->count = self->stale_writes + self->lost_updates;
    verdict->parts[0] = (struct verdict_part){"stale write", self->stale_writes};
    verdict->parts[1] = (struct verdict_part){"lost update", self->lost_updates};
    verdict->status = verdict->count ? VERDICT_VIOLATED : self->accesses ? VERDICT_HOLDS : VERDICT_INCONCLUSIVE;
    if (verdict->status == VERDICT_INCONCLUSIVE)
        snprintf(verdict->reason, sizeof verdict->reason, "nobody used the store");
    for (int object = 0; object < HISTORY_OBJECT_COUNT; object++)
        check_table_free(&self->objects[object].unacknowledged);
    free(self);
}

const struct checker CHECKER_INTEGRITY = {
    .property = "integrity",
    .title = "integrity",
    .question = "did the store accept a write older than one it had accepted, or lose an acknowledged update?",
    .open = open,
    .record = take,
    .finish = finish,
};
