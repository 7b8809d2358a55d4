/* A lock that anyone may release, with one permit (mutex) or several (semaphore): a greedy choice is the best one.
 *
 * All acquires are alike, and so are all releases: what a state holds is a number. Acquires and releases are *firm*
 * (they did happen, between call and return) or *free* (unknown outcome: at any moment after the call, or never). The
 * algorithm walks through the events in order and places an operation only when it must: a firm one at its return, if
 * it is not placed yet.
 *
 * State after an event: how many permits are taken, which firm operations under way are placed, how many free ones of
 * each kind are used. When another operation is placed early, it is the one under way that returns first: of two that
 * are under way at a moment, the one that returns later may take the other's moment and the other way round.
 *
 * State C is at least as good as C' when it has placed no more of either kind, and what it still has to place can be
 * matched with what C' still has to place, none due earlier than its match, and no more are left over in C' than there
 * are free ones that C has used less. For whatever C' goes on to place, C places the match, or one of these free ones.
 *
 * An acquire that returns unplaced: if a permit is left, it is placed. If none is left, some release must come before
 * it, which is placed too: a firm one that is under way rather than a free one, since the firm one has to be placed
 * anyway and a free one can be used later. Any way to place the acquire places at least as much, so the outcome is at
 * least as good as that of any other. The same holds for a release while no permit is taken: it needs an acquire before
 * it. Without one no way exists, and the events up to here are the shortest prefix that is not linearizable.
 * One state is kept, and an event costs no more than what is under way. */
#include <assert.h>
#include <stdio.h>

#include "checkers/linearizability/linearizable.h"

/* The operations of one kind. */
struct kind_count {
    uint32_t *due; /* firm ones under way and not placed: when they return, the latest first */
    size_t due_count, due_room;
    uint64_t free;                /* free ones left */
    uint32_t last[BLOCKERS_KEPT]; /* the latest that returned, for the evidence */
    uint32_t count;
};

struct permit_counts {
    struct kind_count kinds[2]; /* OPERATION_ACQUIRE, OPERATION_RELEASE */
    int64_t taken, permits;
};

static bool add_due(struct kind_count *kind, uint32_t end, struct limits *limits) {
    if (!limits_more(limits, kind->due, kind->due_count, kind->due_room)) return false;
    size_t place = kind->due_count++;
    for (; place > 0 && kind->due[place - 1] < end; place--) kind->due[place] = kind->due[place - 1];
    kind->due[place] = end;
    return true;
}

/* Places another operation of the kind early. False if there is no other. */
static bool place_another(struct kind_count *kind) {
    if (kind->due_count > 0) {
        kind->due_count--;
        return true;
    }
    if (kind->free > 0) {
        kind->free--;
        return true;
    }
    return false;
}

/* An operation returns. False: it cannot be placed. */
static bool returns(struct permit_counts *counts, enum operation_kind kind, uint32_t operation, uint32_t position) {
    struct kind_count *own = &counts->kinds[kind], *other = &counts->kinds[!kind];
    bool acquire = kind == OPERATION_ACQUIRE;
    bool unplaced = own->due_count > 0 && own->due[own->due_count - 1] == position;
    own->due_count -= unplaced;
    if (unplaced && (acquire ? counts->taken < counts->permits : counts->taken > 0)) counts->taken += acquire ? 1 : -1;
    else if (unplaced && !place_another(other)) return false;
    assert(counts->taken >= 0 && counts->taken <= counts->permits);
    own->last[own->count++ % BLOCKERS_KEPT] = operation;
    return true;
}

static void explain(const struct permit_counts *counts, const struct timeline *timeline, uint32_t operation,
                    struct linearizable_result *result) {
    char why[240];
    bool acquire = timeline->object->list[operation].kind == OPERATION_ACQUIRE;
    const struct kind_count *kind = &counts->kinds[acquire ? OPERATION_ACQUIRE : OPERATION_RELEASE];
    if (acquire && counts->permits == 1)
        snprintf(why, sizeof why,
                 "the lock is held until it returns, and no release is under way or of unknown outcome");
    else if (acquire)
        snprintf(why, sizeof why,
                 "all %lld permits are taken until it returns, and no release is under way or of unknown outcome",
                 (long long)counts->permits);
    else
        snprintf(why, sizeof why, "%s until it returns, and no acquire is under way or of unknown outcome",
                 counts->permits == 1 ? "the lock is free" : "no permit is taken");
    linearizable_violate(result, operation, timeline->object->list[operation].end, why);
    for (uint32_t each = 0; each < BLOCKERS_KEPT && each < kind->count && each < counts->permits; each++)
        linearizable_block(result, kind->last[(kind->count - 1 - each) % BLOCKERS_KEPT]);
}

void linearizable_count(struct timeline *timeline, const struct linearizable_settings *settings, struct limits *limits,
                        struct linearizable_result *result) {
    struct permit_counts counts = {.permits = settings->model == MODEL_MUTEX ? 1 : settings->permits};
    for (uint32_t position = 0; position < timeline->length && !limits_late(limits); position++) {
        uint32_t event = timeline->events[position];
        if (event == TIMELINE_NOTHING) continue;
        const struct operation *operation = &timeline->object->list[event / 2];
        if (operation->kind > OPERATION_RELEASE) continue; /* read for a lock that has an owner */
        struct kind_count *kind = &counts.kinds[operation->kind];
        if (event % 2 == 0) {
            if (timeline_standing(timeline, operation) == STANDS_FREE) kind->free++;
            else if (!add_due(kind, operation->end, limits)) break;
        } else if (!returns(&counts, (enum operation_kind)operation->kind, event / 2, position)) {
            explain(&counts, timeline, event / 2, result);
            break;
        }
    }
    for (int each = 0; each < 2; each++)
        limits_free(limits, counts.kinds[each].due, counts.kinds[each].due_room * sizeof *counts.kinds[each].due);
}
