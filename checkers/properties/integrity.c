/* Integrity: did the store accept a write older than one it had accepted, lose an acknowledged update, or do the work
 * of one operation twice?
 *
 * Stale write: an accepted write whose grant is older than that of an accepted write before it under the same lock, in
 * the store's order. Grants are ordered by token, where both have one and they differ, else by their index in the
 * history; a write without a grant is not compared. Nor is one under a lock with several permits: an older grant may
 * stand beside a newer one.
 *
 * Lost update: an accepted write that was computed from version b overwrites the accepted writes b+1 .. v before it,
 * if its writer had seen none of them. Each of these counts once, and only if it was acknowledged to its own writer
 * before that began anything else (an update of unknown outcome may as well not have happened). Writes that the store
 * itself computes (ADD) and blind ones lose nothing. A write that is delivered again is no further update, and does not
 * lose itself.
 *
 * Duplicated operation: the store carried out an ADD to a counter again for the same operation of the same client; the
 * last 64 operations of that client are compared. Or an ADD to the set of what another operation had added; the last 64
 * additions are compared. The set says which work was done, and that piece was done again.
 *
 * It holds only if a write was accepted. It does not apply where every lock has several permits, unless there is an
 * ADD: a user who wants it judged there has to require it.
 *
 * Memory: the state of every version would grow with the history. Instead, runs (struct runs) say which versions cannot
 * be lost any more; a history in which nothing is lost and every write is acknowledged has none. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "checkers/engine/checker.h"

enum { STALE_WRITE, LOST_UPDATE, DUPLICATED };
enum { RUNS_MOST = 1 << 16, WINDOW = 64 };

/* The versions after `from` up to `to`. */
struct run {
    int64_t from, to;
};

/* Rising and disjoint. When there are too many, the lower half is dropped: nothing below is counted any more. */
struct runs {
    struct run *run;
    size_t count, room;
    int64_t floor;
};

/* What one client did to one object. */
struct store_writer {
    uint32_t op;                     /* newest accepted; 0: none */
    uint64_t window;                 /* bit n: operation op - n was accepted */
    int64_t version;                 /* the first one that the newest operation made */
    bool pending;                    /* not acknowledged to its writer yet */
    uint64_t index;                  /* of the record that accepted it */
    uint64_t lost_to;                /* index of the write that overwrote it meanwhile, 0: none */
    LIST_ENTRY(store_writer) others; /* whose newest is pending */
};

struct writers {
    struct store_writer of[HISTORY_OBJECT_COUNT];
};

struct acknowledged {
    int64_t version;
    uint64_t index;
};

struct stored_object {
    int64_t version;                    /* accepted writes so far */
    struct acknowledged newest, second; /* versions that were acknowledged */
    struct runs
        settled; /* versions that cannot be lost (any more): lost already, never acknowledged, or delivered again */
    LIST_HEAD(, store_writer) pending;
};

/* What orders accepted writes. */
struct rank {
    uint32_t grant; /* 0: none */
    int64_t token;
    uint64_t index;
};

/* An accepted addition to the set. */
struct addition {
    int64_t value;
    uint32_t name, op;
    uint64_t index; /* 0: none yet */
};

/* There is more than one newest: grants with a token and grants without are not in one total order. */
enum newest { BY_TOKEN, WITH_TOKEN, WITHOUT_TOKEN, NEWEST_COUNT };

/* Of the accepted writes under a lock. */
struct written {
    struct rank newest[NEWEST_COUNT];
};

struct integrity {
    struct stored_object objects[HISTORY_OBJECT_COUNT];
    struct addition additions[WINDOW];
    uint64_t added;    /* how many */
    bool used;         /* the store: it was read or written */
    bool accepted;     /* a write: without one there is nothing that could be damaged */
    bool computed;     /* the store itself computed what it accepted: ADD */
    uint64_t outdated; /* writes computed from a version that was no longer the newest */
};

/* --- runs --- */

static void runs_forget(struct runs *runs) {
    size_t gone = runs->count / 2;
    assert(gone > 0);
    runs->floor = runs->run[gone - 1].to;
    runs->count -= gone;
    memmove(runs->run, runs->run + gone, runs->count * sizeof *runs->run);
}

/* Replaces `replaced` runs from a place on by one. */
static void runs_put(struct runs *runs, size_t place, size_t replaced, struct run run) {
    assert(place + replaced <= runs->count && run.from < run.to);
    assert(place == 0 || runs->run[place - 1].to < run.from);
    assert(place + replaced == runs->count || runs->run[place + replaced].from > run.to);
    if (runs->count == runs->room) {
        runs->room = runs->room ? runs->room * 2 : 16;
        runs->run = realloc(runs->run, runs->room * sizeof *runs->run);
        if (!runs->run) abort();
    }
    memmove(runs->run + place + 1, runs->run + place + replaced, (runs->count - place - replaced) * sizeof *runs->run);
    runs->run[place] = run;
    runs->count += 1 - replaced;
    if (runs->count >= RUNS_MOST) runs_forget(runs);
}

/* Adds the versions after `from` up to `to`; returns how many of them are new. */
static SELDOM int64_t runs_add(struct runs *runs, int64_t from, int64_t to) {
    from = larger(from, runs->floor);
    if (from >= to) return 0;
    int64_t fresh = to - from;
    size_t end = runs->count; /* runs from here on lie above */
    while (end > 0 && runs->run[end - 1].from > to) end--;
    size_t place = end; /* runs from here up to there touch */
    for (; place > 0 && runs->run[place - 1].to >= from; place--) {
        struct run *run = &runs->run[place - 1];
        fresh -= larger(0, smaller(run->to, to) - larger(run->from, from));
    }
    struct run whole = {from, to};
    if (place < end) whole = (struct run){smaller(from, runs->run[place].from), larger(to, runs->run[end - 1].to)};
    runs_put(runs, place, end - place, whole);
    return fresh;
}

/* --- stale writes --- */

static bool is_older(const struct rank *write, const struct rank *other) {
    if (write->token && other->token && write->token != other->token) return write->token < other->token;
    return write->grant < other->grant;
}

static SELDOM void integrity_violate_stale(struct checking *my, const struct event *event, const struct rank *early) {
    const struct history_record *late = event->record;
    char late_token[40] = "", early_token[40] = "";
    struct history_record other = check_record_at(my->check, early->index);
    const struct violation violation = {.sort = STALE_WRITE,
                                        .who = late->name,
                                        .whom = other.name,
                                        .records = {late->grant, early->grant, early->index}};
    if (late->token) snprintf(late_token, sizeof late_token, " (token %lld)", (long long)late->token);
    if (other.token) snprintf(early_token, sizeof early_token, " (token %lld)", (long long)other.token);
    violate(my, event, &violation,
            "the store accepted a stale write: %pN wrote %s = %lld %pT under an older grant%s, after %pN had written "
            "%pT under a newer one%s",
            &late->name, history_object_name(late->object), (long long)late->value, &late->mono_ns, late_token,
            &other.name, &other.mono_ns, early_token);
}

/* A write that is not newer in both orders. */
static SELDOM void order_write(struct checking *my, const struct event *event, struct rank write, struct rank *newest) {
    if (is_older(&write, &newest[BY_TOKEN])) integrity_violate_stale(my, event, &newest[BY_TOKEN]);
    else if (is_older(&write, &newest[WITH_TOKEN])) integrity_violate_stale(my, event, &newest[WITH_TOKEN]);
    else if (is_older(&write, &newest[WITHOUT_TOKEN])) integrity_violate_stale(my, event, &newest[WITHOUT_TOKEN]);
    enum newest by_grant = write.token ? WITH_TOKEN : WITHOUT_TOKEN;
    if (write.grant >= newest[by_grant].grant) newest[by_grant] = write;
    if (write.token && !is_older(&write, &newest[BY_TOKEN])) newest[BY_TOKEN] = write;
}

static inline void check_order(struct checking *my, const struct event *event) {
    const struct rank write = {event->record->grant, event->record->token, event->index};
    if (!event->lock || event->lock->capacity > 1) return;
    struct rank *newest = ((struct written *)my_lock(my, event->lock))->newest;
    bool by_token = write.token > 0 && write.token > newest[BY_TOKEN].token; /* that is the largest token of all */
    if (by_token && write.grant >= newest[WITH_TOKEN].grant && write.grant >= newest[WITHOUT_TOKEN].grant) {
        newest[WITH_TOKEN] = write;
        newest[BY_TOKEN] = write;
    } else {
        order_write(my, event, write, newest);
    }
}

/* --- lost updates --- */

/* The event is the write that lost the update; or, with `lost_to`, that write was before, and the event is the answer
 * that acknowledged the update after it. */
static SELDOM void violate_lost(struct checking *my, const struct event *event, uint64_t lost_index, uint64_t lost_to,
                                int64_t times) {
    struct history_record lost = check_record_at(my->check, lost_index);
    struct history_record by = check_record_at(my->check, lost_to ? lost_to : event->index);
    const struct violation violation = {.sort = LOST_UPDATE,
                                        .times = (uint64_t)times,
                                        .who = by.name,
                                        .whom = lost.name,
                                        .records = {lost_index, lost_to}};
    violate(my, event, &violation,
            "lost update: %pN wrote %s = %lld %pT from version %lld, over what %pN had written %pT and %s%pT, which it "
            "had not seen (%lld acknowledged update%s gone)",
            &by.name, history_object_name(by.object), (long long)by.value, &by.mono_ns, (long long)by.extra, &lost.name,
            &lost.mono_ns, lost_to ? "was told of " : "been told of", lost_to ? &event->record->mono_ns : NULL,
            (long long)times, times == 1 ? "" : "s");
}

/* own: the version that this operation has made already, which it does not lose; 0: none. */
static SELDOM void lose(struct checking *my, const struct event *event, struct stored_object *object, int64_t own) {
    struct integrity *self = my->state;
    const struct history_record *record = event->record;
    int64_t base = record->extra, to = object->version;
    self->outdated += own == 0;
    int64_t lost = own > base ? runs_add(&object->settled, base, own - 1) + runs_add(&object->settled, own, to)
                              : runs_add(&object->settled, base, to);
    struct store_writer *pending;
    LIST_FOREACH (pending, &object->pending, others) {
        if (pending->lost_to || pending->version <= base || pending->version == own) continue;
        pending->lost_to = event->index;
        lost--;
    }
    /* Below the floor nothing was counted as new, but a pending one was taken away: `lost` may be less than 0. */
    if (lost > 0)
        violate_lost(my, event, object->newest.version == own ? object->second.index : object->newest.index, 0, lost);
}

static void acknowledged_add(struct stored_object *object, int64_t version, uint64_t index) {
    const struct acknowledged update = {version, index};
    if (version > object->newest.version) {
        object->second = object->newest;
        object->newest = update;
    } else if (version > object->second.version) {
        object->second = update;
    }
}

static void pending_add(struct stored_object *object, struct store_writer *writer) {
    assert(!writer->pending && writer->version > 0);
    writer->pending = true;
    LIST_INSERT_HEAD(&object->pending, writer, others);
}

static void pending_remove(struct store_writer *writer) {
    assert(writer->pending);
    writer->pending = false;
    LIST_REMOVE(writer, others);
}

/* It was never acknowledged to its writer, so it cannot be lost. */
static SELDOM void never_acknowledged(struct stored_object *object, struct store_writer *writer) {
    pending_remove(writer);
    runs_add(&object->settled, writer->version - 1, writer->version);
}

/* --- records --- */

/* Notes an operation of a writer. True: it had been accepted before. */
static bool delivered_before(struct store_writer *writer, uint32_t op) {
    if (op > writer->op) {
        uint32_t ahead = op - writer->op;
        writer->window = (ahead < WINDOW ? writer->window << ahead : 0) | 1;
        return false;
    }
    uint32_t behind = writer->op - op;
    if (op == 0 || behind >= WINDOW) return false;
    bool before = writer->window >> behind & 1;
    writer->window |= (uint64_t)1 << behind;
    return before;
}

static SELDOM void duplicate(struct checking *my, const struct event *event, uint64_t first, const char *once_more) {
    violate(my, event, &(struct violation){.sort = DUPLICATED, .who = event->record->name, .records = {first}},
            "the store carried out operation %lld of %pN%s %pT, and added %lld again", (long long)event->record->op,
            &event->record->name, once_more, &event->record->mono_ns, (long long)event->record->value);
}

/* Looks for the latest kept addition of the same value by another operation, of any client. */
static SELDOM void check_addition(struct checking *my, const struct event *event) {
    struct integrity *self = my->state;
    const struct history_record *record = event->record;
    const struct addition *same = NULL;
    for (uint64_t back = 1; back <= WINDOW && back <= self->added && !same; back++) {
        const struct addition *before = &self->additions[(self->added - back) % WINDOW];
        bool itself = record->op && before->name == record->name && before->op == record->op;
        if (before->value == record->value && !itself) same = before;
    }
    if (same) duplicate(my, event, same->index, "");
    self->additions[self->added++ % WINDOW] = (struct addition){record->value, record->name, record->op, event->index};
}

/* The writer has ended, begun something else, or been answered: this write will not be acknowledged to it. */
static bool comes_late(const struct event *event) {
    const struct check_actor *actor = event->actor;
    uint32_t op = event->record->op;
    return actor->gone || actor->op > op || (actor->op == op && !actor->outstanding);
}

/* A write that the store computed itself. */
static SELDOM void computed(struct checking *my, const struct event *event, uint64_t first, bool again) {
    ((struct integrity *)my->state)->computed = true;
    if (again && event->record->object == HISTORY_OBJECT_COUNTER) duplicate(my, event, first, " once more");
    if (event->record->object == HISTORY_OBJECT_SET) check_addition(my, event);
}

static void accepted(struct checking *my, const struct event *event, struct stored_object *object,
                     struct store_writer *writer) {
    const struct history_record *record = event->record;
    uint32_t op = record->op;
    /* `newest` before delivered_before() notes the operation; lose() before the version is counted. */
    bool newest = op && op == writer->op, again = delivered_before(writer, op);
    check_order(my, event);
    if (record->flags & HISTORY_FLAG_ATOMIC) computed(my, event, newest ? writer->index : 0, again);
    else if (record->extra >= 0 && record->extra < object->version)
        lose(my, event, object, newest ? writer->version : 0);
    int64_t version = ++object->version;
    if (op == 0) { /* its writer records nothing: taken for acknowledged */
        acknowledged_add(object, version, event->index);
    } else if (again || op < writer->op) {
        runs_add(&object->settled, version - 1, version);
    } else {
        if (writer->pending) never_acknowledged(object, writer);
        writer->op = op;
        writer->version = version;
        writer->index = event->index;
        writer->lost_to = 0;
        if (comes_late(event)) runs_add(&object->settled, version - 1, version);
        else pending_add(object, writer);
    }
}

static bool integrity_is_object(unsigned object) {
    return object != HISTORY_OBJECT_NONE && object < HISTORY_OBJECT_COUNT;
}

static void integrity_written(struct checking *my, const struct event *event) {
    struct integrity *self = my->state;
    const struct history_record *record = event->record;
    if (!integrity_is_object(record->object)) return;
    self->used = true;
    self->accepted |= record->outcome == OUTCOME_OK;
    if (record->outcome == OUTCOME_OK)
        accepted(my, event, &self->objects[record->object],
                 &((struct writers *)my_actor(my, event->actor))->of[record->object]);
    my->verdict.stopped += record->outcome == OUTCOME_REFUSED;
}

static void read(struct checking *my, const struct event *event) {
    ((struct integrity *)my->state)->used |= integrity_is_object(event->record->object);
}

static void integrity_answered(struct checking *my, const struct event *event) {
    const struct history_record *record = event->record;
    if (!integrity_is_object(record->object)) return;
    struct stored_object *object = &((struct integrity *)my->state)->objects[record->object];
    struct store_writer *writer = &((struct writers *)my_actor(my, event->actor))->of[record->object];
    if (!writer->pending || writer->op != record->op) return;
    bool moved_on = event->actor->begun > writer->index;
    if (record->outcome != OUTCOME_OK || moved_on) {
        never_acknowledged(object, writer);
        return;
    }
    pending_remove(writer);
    acknowledged_add(object, writer->version, writer->index);
    if (writer->lost_to) violate_lost(my, event, writer->index, writer->lost_to, 1);
}

static SELDOM void integrity_ended(struct checking *my, const struct event *event) {
    struct writers *writers = my_actor(my, event->actor);
    for (int each = 1; each < HISTORY_OBJECT_COUNT; each++) {
        if (writers->of[each].pending)
            never_acknowledged(&((struct integrity *)my->state)->objects[each], &writers->of[each]);
        writers->of[each] = (struct store_writer){0}; /* a new process of this name numbers its operations anew */
    }
}

/* Holders of a lock with several permits work at the same time, and may overwrite each other's data. */
static bool holders_are_several(const struct check *check) {
    for (const struct check_lock *lock = check->locks; lock; lock = lock->next)
        if (lock->capacity < 2) return false;
    return check->locks;
}

static void integrity_finish(struct checking *my) {
    struct integrity *self = my->state;
    my->verdict.applies = self->computed || !holders_are_several(my->check);
    my->verdict.stopped -= my->check->refused_wrongfully;
    my->verdict.measures[0] = (struct verdict_measure){"stale_read_modify_writes", (double)self->outdated};
    verdict_decide(&my->verdict, self->accepted, self->used ? "the store accepted no write" : "nobody used the store");
    for (int each = 0; each < HISTORY_OBJECT_COUNT; each++) free(self->objects[each].settled.run);
}

const struct checker CHECKER_INTEGRITY = {
    .property = "integrity",
    .sorts = {"stale write", "lost update", "duplicated operation"},
    .state_size = sizeof(struct integrity),
    .lock_size = sizeof(struct written),
    .actor_size = sizeof(struct writers),
    .on = {[HISTORY_STORE_READ] = read,
           [HISTORY_STORE_WRITE] = integrity_written,
           [HISTORY_WRITE_RETURN] = integrity_answered,
           [HISTORY_ACTOR_EXIT] = integrity_ended},
    .finish = integrity_finish,
};
