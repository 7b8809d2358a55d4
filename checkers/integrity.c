/* Integrity: did the store accept a write older than one it had accepted, or lose an acknowledged update?
 *
 * Stale write: an accepted write whose grant is older than that of an accepted write before it, in the store's order.
 * Grants are ordered by token, where both have one and they differ, else by their index in the history; a write without
 * a grant is not compared.
 *
 * Lost update: an accepted write that was computed from version b overwrites the accepted writes b+1 .. v before it,
 * none of which its writer had seen. Each of these counts once, and only if its own writer was told that it had
 * succeeded (an update whose outcome its writer does not know may as well not have happened). Writes that the store
 * itself computes (ADD) and blind ones lose nothing, nor does a write that was delivered twice in a row lose itself. */
#include <stdio.h>
#include <stdlib.h>

#include "checkers/checker.h"

extern const struct checker CHECKER_INTEGRITY;

/* An accepted write. */
struct write {
    uint32_t actor, op, grant;
    int64_t token, value, base, version;
    uint64_t index;
};

/* One whose writer has not been told yet. */
struct unacknowledged {
    uint32_t key; /* of no use here */
    bool lost;
    struct write write, lost_to;
};

/* The versions after `from` up to `to`: every loss among them has been counted, or is marked as unacknowledged. */
struct span {
    uint32_t key; /* of no use here */
    int64_t from, to;
};

struct object {
    int64_t version; /* accepted writes so far */
    struct write last, last_acknowledged;
    struct check_table unacknowledged;
    struct check_table lost; /* spans, rising, disjoint */
};

/* Not one newest, for the order is not a line where some grants have a token and some have none. */
enum newest { BY_TOKEN, WITH_TOKEN, WITHOUT_TOKEN, NEWEST_COUNT };

struct integrity {
    const struct check *check;
    struct object objects[HISTORY_OBJECT_COUNT];
    struct write newest[NEWEST_COUNT];
    uint64_t accesses, stale_writes, lost_updates;
    struct verdict verdict;
};

static bool is_older(const struct write *write, const struct write *other) {
    if (write->token && other->token && write->token != other->token) return write->token < other->token;
    return write->grant < other->grant;
}

static void describe_stale(struct integrity *self, unsigned object, const struct write *late,
                           const struct write *early) {
    char late_name[64], early_name[64];
    struct evidence *evidence =
        verdict_evidence(&self->verdict, (const uint64_t[]){late->grant, early->grant, early->index, late->index}, 4);
    if (!evidence) return;
    snprintf(evidence->text, sizeof evidence->text,
             "the store accepted a stale write: %s wrote %s = %lld under an older grant, after %s had written under a "
             "newer one",
             check_name(self->check, late->actor, late_name, sizeof late_name), history_object_name(object),
             (long long)late->value, check_name(self->check, early->actor, early_name, sizeof early_name));
}

static void check_order(struct integrity *self, unsigned object, const struct write *write) {
    struct write *newest = self->newest;
    if (write->grant == 0) return;
    for (int each = 0; each < NEWEST_COUNT; each++) {
        if (newest[each].grant == 0 || !is_older(write, &newest[each])) continue;
        self->stale_writes++;
        describe_stale(self, object, write, &newest[each]);
        break;
    }
    enum newest by_grant = write->token ? WITH_TOKEN : WITHOUT_TOKEN;
    if (write->grant > newest[by_grant].grant) newest[by_grant] = *write;
    if (write->token && (newest[BY_TOKEN].grant == 0 || !is_older(write, &newest[BY_TOKEN]))) newest[BY_TOKEN] = *write;
}

static void describe_loss(struct integrity *self, unsigned object, const struct write *by, const struct write *loser,
                          int64_t lost) {
    char by_name[64], loser_name[64];
    struct evidence *evidence = verdict_evidence(&self->verdict, (const uint64_t[]){loser->index, by->index}, 2);
    if (!evidence) return;
    snprintf(evidence->text, sizeof evidence->text,
             "lost update: %s wrote %s = %lld from version %lld, over version %lld by %s, which it had not seen (%lld "
             "acknowledged update%s gone)",
             check_name(self->check, by->actor, by_name, sizeof by_name), history_object_name(object),
             (long long)by->value, (long long)by->base, (long long)loser->version,
             check_name(self->check, loser->actor, loser_name, sizeof loser_name), (long long)lost,
             lost == 1 ? "" : "s");
}

/* Adds the versions after `from` up to `to` - none yet in is newer - to the lost ones; returns how many were not. */
static int64_t span_add(struct check_table *lost, int64_t from, int64_t to) {
    int64_t fresh = to - from;
    while (lost->count) {
        const struct span *top = (const struct span *)lost->entries + lost->count - 1;
        if (top->to <= from) break;
        fresh -= top->to - (top->from > from ? top->from : from);
        if (top->from < from) from = top->from;
        lost->count--;
    }
    struct span *span = check_table_add(lost, 0);
    *span = (struct span){0, from, to};
    return fresh;
}

/* How many acknowledged updates this write loses; the others are marked, should the word still come. */
static int64_t count_lost(struct object *object, const struct write *by, int64_t to) {
    int64_t lost = span_add(&object->lost, by->base, to);
    for (size_t each = 0; each < object->unacknowledged.count; each++) {
        struct unacknowledged *pending = (struct unacknowledged *)object->unacknowledged.entries + each;
        if (pending->lost || pending->write.version <= by->base || pending->write.version > to) continue;
        pending->lost = true;
        pending->lost_to = *by;
        lost--;
    }
    return lost;
}

static void check_loss(struct integrity *self, unsigned object_number, const struct write *write) {
    struct object *object = &self->objects[object_number];
    bool again = write->op && write->op == object->last.op && write->actor == object->last.actor;
    int64_t to = object->version - again;
    if (write->base < 0 || write->base >= to) return;
    int64_t lost = count_lost(object, write, to);
    self->lost_updates += (uint64_t)lost;
    if (lost) describe_loss(self, object_number, write, &object->last_acknowledged, lost);
}

static void accepted(struct integrity *self, const struct history_record *record, uint64_t index) {
    struct object *object = &self->objects[record->object];
    bool computed = record->flags & HISTORY_FLAG_ATOMIC; /* by the store itself */
    struct write write = {record->name,        record->op,    record->grant,
                          record->token,       record->value, computed ? -1 : record->extra,
                          object->version + 1, index};
    check_order(self, record->object, &write);
    check_loss(self, record->object, &write);
    object->version++;
    object->last = write;
    if (record->op == 0) {
        object->last_acknowledged = write; /* a stranger: told, as far as we know */
        return;
    }
    struct unacknowledged *pending = check_table_add(&object->unacknowledged, 0);
    *pending = (struct unacknowledged){.write = write};
}

static void acknowledged(struct integrity *self, const struct history_record *record) {
    struct object *object = &self->objects[record->object];
    for (size_t each = object->unacknowledged.count; each-- > 0;) {
        struct unacknowledged *pending = (struct unacknowledged *)object->unacknowledged.entries + each;
        if (pending->write.actor != record->actor || pending->write.op != record->op) continue;
        if (pending->write.version > object->last_acknowledged.version) object->last_acknowledged = pending->write;
        self->lost_updates += pending->lost;
        if (pending->lost) describe_loss(self, record->object, &pending->lost_to, &pending->write, 1);
        check_table_remove(&object->unacknowledged, pending);
        return;
    }
}

static void *open(const struct check *check) {
    struct integrity *self = calloc(1, sizeof *self);
    if (!self) abort();
    self->check = check;
    for (int object = 0; object < HISTORY_OBJECT_COUNT; object++) {
        self->objects[object].unacknowledged.size = sizeof(struct unacknowledged);
        self->objects[object].lost.size = sizeof(struct span);
    }
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
    for (int object = 0; object < HISTORY_OBJECT_COUNT; object++) {
        check_table_free(&self->objects[object].unacknowledged);
        check_table_free(&self->objects[object].lost);
    }
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
