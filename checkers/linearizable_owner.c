/* Locks that have an owner: owner-mutex, reentrant-mutex, fenced-mutex. A small set of configurations is enough.
 *
 * Firm operations did happen between call and return; free ones (unknown outcome) at any moment after the call, or
 * never. A linearization can be brought into a normal form, step by step, and only that form is looked for:
 *
 *  1. A hold may be shortened: its firm acquire is moved to just before its return, its firm release to just after its
 *     call. What was allowed around it still is, since the lock is free more often. So a hold that begins and ends with
 *     firm operations takes up exactly the time from the return of the one to the call of the other. (A second acquire
 * of a re-entrant lock within the hold is moved to just before its return, a release to just after its call.)
 *  2. A free acquire is of use only directly before a firm release of the same process that finds nothing to release:
 * held without such a release it only stands in the way, and together with a free release it does nothing. The two take
 *     up one free moment between the release's call and return; nobody else notices.
 *  3. A free release is of use only where it ends a hold of its process so that the lock is free when somebody needs it
 *     to be. It is moved to the last moment before that, or - where the hold is free releases away from its very
 * acquire - acquire and release together take up one free moment while the acquire is under way. A process does one
 * thing after the other, so the free operation that goes with a firm one was called before it.
 *  4. Moments are alike: what needs a free moment after s has one if the last free moment so far is after s. While p
 * holds, the last free moment was just before p's acquire returned (by 1). While nobody holds, it is now.
 *
 * So one walks through the events and keeps configurations: who holds, since when, how deep; for each process how many
 * of its free operations are used; and who *owes*: a release was called while its process did not hold, and needs a
 * free acquire and a moment (2) until it returns. At each event at most two successors come into question:
 *
 *   firm release of p called     p holds: it ends here, or is one less deep (1). Else p owes.
 *   firm release of p returns    If it owes: (2), at the last free moment if that is after its call; else now, when the
 *                                holder can be let go by free releases (3).
 *   firm acquire of p returns    Nobody holds: p holds. Else (a) the holder is let go now (3) and p holds; (b) p's
 * acquire and a free release of p took up the last free moment (3), or p holds and may again. free operation called One
 * more to use.
 *
 * A configuration is dropped when another one owes no more and has used no more of anything: whatever the first can go
 * on with, the other can, since it may use now what it has used less, and is where the first is (its holder follows
 * from what was used). One thing may be lost by that: a free moment in the past that only the first has had, which
 * matters while something is under way that was called before that moment and after the other's hold began. With
 * nothing ambiguous there is one configuration; each fork needs stray free operations of a process. When none is left,
 * the events up to here are the shortest prefix that is not linearizable: nothing above looks further ahead than to
 * what is under way, and that is free in the prefix and does no harm.
 *
 * Fenced-mutex: tokens say in which order the firm acquires happened. So an acquire also has to come before the return
 * of every acquire with a larger token; if it was called only after that, there
 * is no linearization. Acquires are taken at that earliest return, in the order of tokens, and (b) is out of the
 * question: the last free moment is before a grant with a smaller token. A free acquire took a token too, a whole
 * number, so it needs one between those of the grants around it: a free time is kept as a *gap* with the room that it
 * has, while somebody owes. Who owes pays, when its release returns, in the oldest gap since its call (those who return
 * later can do with a later one); else now, letting the holder go if need be; and when there is no token below the next
 * one, those acquires that come next and are under way are done first, each with a free release - as few as it takes.
 * Each time the first choice that there is loses nothing: who would have needed the gap can take the place that was not
 * taken now, at its own return or when the hold ends. So there is one configuration. The bounds use tokens that are
 * seen only later; so the shortest prefix is found by bisection, which is allowed because a prefix of what is
 * linearizable is linearizable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/linearizable.h"

enum { NOBODY = UINT32_MAX };

/* What a configuration has used more than all others have, of one process. */
struct difference {
    uint32_t process;
    uint32_t releases, acquires;
    bool owes;
};

/* A time without a holder that is over, and how many grants of unknown tokens fit into it. */
struct gap {
    uint32_t end;
    uint64_t room;
};

struct configuration {
    uint32_t holder, since, depth;
    uint32_t grant; /* the operation with which the hold began */
    bool dead;
    struct difference *differences;
    size_t difference_count, difference_room;
};

/* Fenced: the firm acquires of the prefix in the order of tokens, and what the one configuration has made of them. */
struct order {
    uint32_t *grants, *deadlines; /* until when each must be done */
    uint32_t count, all;          /* in this prefix; in the whole history, whose order stands behind it in `grants` */
    uint32_t due;                 /* the first whose deadline has not come */
    uint32_t next;                /* the first that has not happened */
    int64_t newest;               /* token */
    struct gap *gaps;
    size_t gap_count, gap_room;
};

/* How many free operations of one kind there are, per process: called so far, and used by every configuration. */
struct supply {
    uint32_t *called, *used;
};

struct sweep {
    struct timeline *timeline;
    struct limits *limits;
    struct linearizable_result *result;
    enum model model;
    bool keep_all; /* for tests: no configuration is dropped for another */
    uint32_t processes, position;
    struct supply releases, acquires;
    uint32_t *last_firm; /* per process: the position after which it has no firm operation */
    struct order order;
    uint32_t *under_way; /* firm operations */
    size_t under_way_count, under_way_room;
    struct configuration *list;
    size_t count, room;
};

/* --- memory --- */

static uint32_t *numbers(struct sweep *sweep, size_t count) {
    uint32_t *made = limits_resize(sweep->limits, NULL, 0, (count + 1) * sizeof *made);
    if (made) memset(made, 0, (count + 1) * sizeof *made);
    return made;
}

static void numbers_free(struct sweep *sweep, uint32_t *made, size_t count) {
    if (made) limits_free(sweep->limits, made, (count + 1) * sizeof *made);
}

static void configuration_free(struct sweep *sweep, struct configuration *it) {
    limits_free(sweep->limits, it->differences, it->difference_room * sizeof *it->differences);
}

/* A copy at the end of the list, which may move; NULL past the limit. */
static struct configuration *fork_of(struct sweep *sweep, size_t index) {
    if (!limits_grow(sweep->limits, (void **)&sweep->list, sizeof *sweep->list, sweep->count, &sweep->room))
        return NULL;
    const struct configuration *from = &sweep->list[index];
    size_t bytes = from->difference_count * sizeof *from->differences;
    struct difference *differences = bytes ? limits_resize(sweep->limits, NULL, 0, bytes) : NULL;
    if (bytes && !differences) return NULL;
    if (bytes) memcpy(differences, from->differences, bytes);
    struct configuration *made = &sweep->list[sweep->count++];
    *made = *from;
    made->differences = differences;
    made->difference_room = from->difference_count;
    return made;
}

/* --- what a configuration has used --- */

static struct difference *difference_find(const struct configuration *it, uint32_t process) {
    for (size_t each = 0; each < it->difference_count; each++)
        if (it->differences[each].process == process) return &it->differences[each];
    return NULL;
}

/* Past the limit, some memory that nobody looks at: the search is over. */
static struct difference *difference_get(struct sweep *sweep, struct configuration *it, uint32_t process) {
    static struct difference nowhere;
    struct difference *found = difference_find(it, process);
    if (found) return found;
    if (!limits_grow(sweep->limits, (void **)&it->differences, sizeof *it->differences, it->difference_count,
                     &it->difference_room))
        return &nowhere;
    it->differences[it->difference_count] = (struct difference){.process = process};
    return &it->differences[it->difference_count++];
}

static uint32_t releases_used(const struct sweep *sweep, const struct configuration *it, uint32_t process) {
    const struct difference *found = difference_find(it, process);
    return sweep->releases.used[process] + (found ? found->releases : 0);
}

static uint32_t acquires_used(const struct sweep *sweep, const struct configuration *it, uint32_t process) {
    const struct difference *found = difference_find(it, process);
    return sweep->acquires.used[process] + (found ? found->acquires : 0);
}

static bool can_let_go(const struct sweep *sweep, const struct configuration *it) {
    return releases_used(sweep, it, it->holder) + it->depth <= sweep->releases.called[it->holder];
}

static void let_go(struct sweep *sweep, struct configuration *it) {
    difference_get(sweep, it, it->holder)->releases += it->depth;
    it->holder = NOBODY;
}

static bool owes(const struct configuration *it, uint32_t process) {
    const struct difference *found = difference_find(it, process);
    return found && found->owes;
}

static bool owes_any(const struct configuration *it) {
    for (size_t each = 0; each < it->difference_count; each++)
        if (it->differences[each].owes) return true;
    return false;
}

/* Was an operation that is under way, of another process, called after one position and before another? */
static bool is_called_between(const struct sweep *sweep, uint32_t process, uint32_t after, uint32_t before) {
    for (size_t each = 0; each < sweep->under_way_count; each++) {
        const struct operation *operation = &sweep->timeline->object->list[sweep->under_way[each]];
        if (operation->process != process && operation->call >= after && operation->call < before) return true;
    }
    return false;
}

/* --- fewer configurations --- */

/* A process without firm operations to come, which does not hold: what it has used does not matter any more. */
static void forget_finished(struct sweep *sweep, struct configuration *it) {
    for (size_t each = it->difference_count; each-- > 0;) {
        uint32_t process = it->differences[each].process;
        if (process == it->holder || sweep->last_firm[process] > sweep->position) continue;
        it->differences[each] = it->differences[--it->difference_count];
    }
}

/* Moves what all have used to where all have it. */
static void fold(struct sweep *sweep) {
    struct configuration *first = &sweep->list[0];
    for (size_t each = first->difference_count; each-- > 0;) {
        uint32_t process = first->differences[each].process;
        uint32_t releases = first->differences[each].releases, acquires = first->differences[each].acquires;
        for (size_t other = 1; other < sweep->count; other++) {
            const struct difference *found = difference_find(&sweep->list[other], process);
            if (!found || found->releases < releases) releases = found ? found->releases : 0;
            if (!found || found->acquires < acquires) acquires = found ? found->acquires : 0;
        }
        sweep->releases.used[process] += releases;
        sweep->acquires.used[process] += acquires;
        for (size_t other = 0; other < sweep->count; other++) {
            struct configuration *it = &sweep->list[other];
            struct difference *found = difference_find(it, process);
            if (!found) continue;
            found->releases -= releases;
            found->acquires -= acquires;
            if (!found->releases && !found->acquires && !found->owes) *found = it->differences[--it->difference_count];
        }
    }
}

/* Has `one` used no more, and does it owe no more, than `other`? */
static bool uses_no_more(const struct configuration *one, const struct configuration *other) {
    for (size_t each = 0; each < one->difference_count; each++) {
        const struct difference *mine = &one->differences[each], *theirs = difference_find(other, mine->process);
        if (mine->releases > (theirs ? theirs->releases : 0) || mine->acquires > (theirs ? theirs->acquires : 0))
            return false;
        if (mine->owes && !(theirs && theirs->owes)) return false;
    }
    return true;
}

/* Can `one` do all that `other` can? With another holder, or none: it does now what `other` has used more, and that
 * makes the lock free for a moment. With the same one, what is under way may want a moment that only `other` has had.
 */
static bool is_as_good(const struct sweep *sweep, const struct configuration *one, const struct configuration *other) {
    if (!uses_no_more(one, other)) return false;
    return one->holder == NOBODY || one->holder != other->holder || one->since >= other->since ||
           !is_called_between(sweep, one->holder, one->since, other->since);
}

static void drop_dead(struct sweep *sweep) {
    size_t kept = 0;
    for (size_t each = 0; each < sweep->count; each++) {
        if (sweep->list[each].dead) configuration_free(sweep, &sweep->list[each]);
        else sweep->list[kept++] = sweep->list[each];
    }
    sweep->count = kept;
}

static void prune(struct sweep *sweep) {
    drop_dead(sweep);
    if (sweep->keep_all) return;
    for (size_t each = 0; each < sweep->count; each++) forget_finished(sweep, &sweep->list[each]);
    for (size_t each = 0; sweep->count > 1 && each < sweep->count && !limits_late(sweep->limits); each++)
        for (size_t other = 0; other < sweep->count && !sweep->list[each].dead; other++)
            if (other != each && !sweep->list[other].dead && is_as_good(sweep, &sweep->list[other], &sweep->list[each]))
                sweep->list[each].dead = true;
    if (sweep->count > 1) drop_dead(sweep);
    if (sweep->list[0].difference_count) fold(sweep);
    if (sweep->count > sweep->result->configurations) sweep->result->configurations = sweep->count;
}

/* --- events --- */

static void release_called(struct sweep *sweep, const struct operation *operation) {
    for (size_t each = 0; each < sweep->count; each++) {
        struct configuration *it = &sweep->list[each];
        if (it->holder != operation->process) difference_get(sweep, it, operation->process)->owes = true;
        else if (--it->depth == 0) it->holder = NOBODY;
    }
}

static void pay(struct sweep *sweep, struct configuration *it, uint32_t process) {
    struct difference *difference = difference_get(sweep, it, process);
    difference->owes = false;
    difference->acquires++;
    if (!owes_any(it)) sweep->order.gap_count = 0;
}

/* Nobody holds: a token for a free acquire now, larger than the newest and smaller than the next one. Where there is
 * none, the acquire with the next one happens first, if it is under way and a free release ends its hold. */
static bool take_token(struct sweep *sweep, struct configuration *it) {
    struct order *order = &sweep->order;
    if (sweep->model != MODEL_FENCED_MUTEX) return true;
    for (; order->next < order->count; order->next++) {
        const struct operation *next = &sweep->timeline->object->list[order->grants[order->next]];
        if (order->newest < next->value - 1) break;
        if (order->newest >= next->value || next->call > sweep->position) return false;
        if (releases_used(sweep, it, next->process) >= sweep->releases.called[next->process]) return false;
        difference_get(sweep, it, next->process)->releases++;
        order->newest = next->value;
    }
    if (order->newest == INT64_MAX) return false;
    order->newest++;
    return true;
}

/* Takes a token in the oldest gap that lasted beyond `start`. */
static bool take_gap(struct order *order, uint32_t start) {
    for (size_t each = 0; each < order->gap_count; each++) {
        if (order->gaps[each].end <= start || order->gaps[each].room == 0) continue;
        order->gaps[each].room--;
        return true;
    }
    return false;
}

/* The debt is paid at a free moment that has been since the call: the last one, or one in a gap. */
static bool pay_back_then(struct sweep *sweep, struct configuration *it, const struct operation *operation) {
    bool moment = it->holder != NOBODY && it->since > operation->call;
    if (sweep->model == MODEL_FENCED_MUTEX ? !take_gap(&sweep->order, operation->call) : !moment) return false;
    pay(sweep, it, operation->process);
    return true;
}

static void release_returned(struct sweep *sweep, const struct operation *operation) {
    uint32_t process = operation->process;
    for (size_t each = 0; each < sweep->count; each++) {
        struct configuration *it = &sweep->list[each];
        if (!owes(it, process)) continue;
        if (acquires_used(sweep, it, process) >= sweep->acquires.called[process]) {
            it->dead = true;
            continue;
        }
        if (pay_back_then(sweep, it, operation)) continue;
        it->dead = it->holder != NOBODY && !can_let_go(sweep, it);
        if (it->dead) continue;
        if (it->holder != NOBODY) let_go(sweep, it);
        it->dead = !take_token(sweep, it);
        if (!it->dead) pay(sweep, it, process);
    }
}

/* The next acquire in the order of tokens happens: the time before it is over, with room for those who owe. */
static bool grant_next(struct sweep *sweep, const struct configuration *it, int64_t token) {
    struct order *order = &sweep->order;
    uint64_t room = (uint64_t)token - (uint64_t)order->newest - 1;
    order->next++;
    if (order->newest >= token) return false;
    order->newest = token;
    if (room == 0 || !owes_any(it)) return true;
    if (limits_grow(sweep->limits, (void **)&order->gaps, sizeof *order->gaps, order->gap_count, &order->gap_room))
        order->gaps[order->gap_count++] = (struct gap){.end = sweep->position, .room = room};
    return true;
}

/* The hold of an acquire begins now, when nobody holds. */
static void hold(struct sweep *sweep, struct configuration *it, uint32_t index) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    it->holder = operation->process;
    it->since = sweep->position;
    it->depth = 1;
    it->grant = index;
    if (sweep->model == MODEL_FENCED_MUTEX) it->dead = !grant_next(sweep, it, operation->value);
}

/* Could the acquire and a free release of its process have taken up the last free moment? */
static bool fits_back_then(const struct sweep *sweep, const struct configuration *it,
                           const struct operation *operation) {
    uint32_t process = operation->process;
    if (sweep->model == MODEL_FENCED_MUTEX || it->holder == process) return false;
    return it->since > operation->call && releases_used(sweep, it, process) < sweep->releases.called[process];
}

static void acquire_returned(struct sweep *sweep, uint32_t index) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    uint32_t process = operation->process;
    for (size_t each = 0, count = sweep->count; each < count; each++) {
        struct configuration *it = &sweep->list[each];
        if (it->holder == NOBODY) {
            hold(sweep, it, index);
        } else if (it->holder == process && sweep->model == MODEL_REENTRANT_MUTEX) {
            bool moment = can_let_go(sweep, it) && is_called_between(sweep, process, it->since, sweep->position);
            struct configuration *other = moment ? fork_of(sweep, each) : NULL;
            if (other) let_go(sweep, other), hold(sweep, other, index);
            sweep->list[each].depth++;
        } else if (fits_back_then(sweep, it, operation)) {
            struct configuration *other = can_let_go(sweep, it) ? fork_of(sweep, each) : NULL;
            if (other) let_go(sweep, other), hold(sweep, other, index);
            difference_get(sweep, &sweep->list[each], process)->releases++;
        } else if (can_let_go(sweep, it)) {
            let_go(sweep, it);
            hold(sweep, it, index);
        } else {
            it->dead = true;
        }
    }
}

/* --- the fenced mutex's order --- */

static const struct operation *sort_list; /* qsort has no room for it */

static int by_token(const void *left, const void *right) {
    const struct operation *one = &sort_list[*(const uint32_t *)left], *two = &sort_list[*(const uint32_t *)right];
    if (one->value != two->value) return one->value < two->value ? -1 : 1;
    return one->end < two->end ? -1 : one->end > two->end;
}

/* The firm acquires of the prefix in order, and until when each must be done. False: one was called too late. */
static bool order_begin(struct sweep *sweep) {
    struct order *order = &sweep->order;
    const struct operation *list = sweep->timeline->object->list;
    const uint32_t *sorted = order->grants + order->all;
    order->count = order->due = order->next = 0;
    order->newest = OPERATION_NIL;
    order->gap_count = 0;
    for (uint32_t each = 0; each < order->all; each++)
        if (timeline_standing(sweep->timeline, &list[sorted[each]]) == STANDS_FIRM)
            order->grants[order->count++] = sorted[each];
    uint32_t earliest = NOBODY;
    for (uint32_t each = order->count; each-- > 0;) {
        if (list[order->grants[each]].end < earliest) earliest = list[order->grants[each]].end;
        order->deadlines[each] = earliest;
    }
    for (uint32_t each = 0; each < order->count; each++) {
        uint32_t index = order->grants[each];
        if (list[index].call < order->deadlines[each]) continue;
        linearizable_violate(sweep->result, index, sweep->timeline->prefix,
                             "a larger token had been granted before it was called");
        for (uint32_t other = each; other < order->count; other++)
            if (list[order->grants[other]].end == order->deadlines[each])
                linearizable_block(sweep->result, order->grants[other]);
        return false;
    }
    return true;
}

static bool order_make(struct sweep *sweep) {
    struct order *order = &sweep->order;
    const struct object *object = sweep->timeline->object;
    for (uint32_t each = 0; each < object->count; each++)
        order->all += object->list[each].kind == OPERATION_ACQUIRE && object->list[each].outcome == OUTCOME_OK;
    order->grants = numbers(sweep, 2 * (size_t)order->all);
    order->deadlines = numbers(sweep, order->all);
    if (!order->grants || !order->deadlines) return false;
    uint32_t *sorted = order->grants + order->all;
    for (uint32_t each = 0; each < object->count; each++)
        if (object->list[each].kind == OPERATION_ACQUIRE && object->list[each].outcome == OUTCOME_OK) *sorted++ = each;
    sort_list = object->list;
    qsort(order->grants + order->all, order->all, sizeof *order->grants, by_token);
    return true;
}

static void order_free(struct sweep *sweep) {
    struct order *order = &sweep->order;
    numbers_free(sweep, order->grants, 2 * (size_t)order->all);
    numbers_free(sweep, order->deadlines, order->all);
    limits_free(sweep->limits, order->gaps, order->gap_room * sizeof *order->gaps);
}

/* Those that must be done now. */
static void order_returned(struct sweep *sweep) {
    struct order *order = &sweep->order;
    while (order->due < order->count && order->deadlines[order->due] == sweep->position && !sweep->list[0].dead) {
        if (order->next == order->due) acquire_returned(sweep, order->grants[order->due]); /* not done before */
        order->due++;
    }
}

/* --- the sweep --- */

static bool supply_make(struct sweep *sweep, struct supply *supply) {
    supply->called = numbers(sweep, sweep->processes);
    supply->used = numbers(sweep, sweep->processes);
    return supply->called && supply->used;
}

static void supply_free(struct sweep *sweep, struct supply *supply) {
    numbers_free(sweep, supply->called, sweep->processes);
    numbers_free(sweep, supply->used, sweep->processes);
    *supply = (struct supply){0};
}

static void violated(struct sweep *sweep, uint32_t index) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    const char *why = operation->kind == OPERATION_RELEASE
                          ? "its process does not hold the lock, and no acquire of unknown outcome makes up for it"
                      : sweep->model == MODEL_FENCED_MUTEX
                          ? "with tokens rising, the lock is held by another when it would have to be granted, and no "
                            "release of unknown outcome makes up for it"
                          : "the lock is held until it returns, and no release of unknown outcome makes up for it";
    linearizable_violate(sweep->result, index, sweep->position, why);
    for (size_t each = 0; each < sweep->count; each++)
        if (sweep->list[each].grant != NOBODY) linearizable_block(sweep->result, sweep->list[each].grant);
}

static void called(struct sweep *sweep, uint32_t index, enum standing standing) {
    const struct operation *operation = &sweep->timeline->object->list[index];
    bool acquires = operation->kind == OPERATION_ACQUIRE;
    if (standing == STANDS_FREE) {
        (acquires ? &sweep->acquires : &sweep->releases)->called[operation->process]++;
        return;
    }
    if (!limits_grow(sweep->limits, (void **)&sweep->under_way, sizeof *sweep->under_way, sweep->under_way_count,
                     &sweep->under_way_room))
        return;
    sweep->under_way[sweep->under_way_count++] = index;
    if (!acquires) release_called(sweep, operation);
}

/* Takes one event; false: nothing is left. */
static bool take(struct sweep *sweep, uint32_t event) {
    uint32_t index = event / 2;
    const struct operation *operation = &sweep->timeline->object->list[index];
    enum standing standing = timeline_standing(sweep->timeline, operation);
    bool acquires = operation->kind == OPERATION_ACQUIRE;
    if (standing == STANDS_NOT || (event % 2 && standing != STANDS_FIRM)) return true;
    if (event % 2 == 0) return called(sweep, index, standing), true;
    for (size_t each = 0; each < sweep->under_way_count; each++)
        if (sweep->under_way[each] == index) sweep->under_way[each] = sweep->under_way[--sweep->under_way_count];
    if (!acquires) release_returned(sweep, operation);
    else if (sweep->model == MODEL_FENCED_MUTEX) order_returned(sweep);
    else acquire_returned(sweep, index);
    bool alive = false;
    for (size_t each = 0; each < sweep->count; each++) alive |= !sweep->list[each].dead;
    if (!alive && !sweep->limits->exceeded[0]) violated(sweep, index);
    else if (alive) prune(sweep);
    return alive;
}

/* One prefix; the result says violated or stays as it was. */
static void run(struct sweep *sweep) {
    const struct object *object = sweep->timeline->object;
    sweep->last_firm = numbers(sweep, sweep->processes);
    bool made = sweep->last_firm && supply_make(sweep, &sweep->releases) && supply_make(sweep, &sweep->acquires) &&
                limits_grow(sweep->limits, (void **)&sweep->list, sizeof *sweep->list, 0, &sweep->room);
    if (made) {
        for (uint32_t each = 0; each < object->count; each++) {
            const struct operation *operation = &object->list[each];
            if (timeline_standing(sweep->timeline, operation) == STANDS_FIRM &&
                operation->end > sweep->last_firm[operation->process])
                sweep->last_firm[operation->process] = operation->end;
        }
        sweep->list[0] = (struct configuration){.holder = NOBODY, .grant = NOBODY};
        sweep->count = 1;
        if (sweep->model == MODEL_FENCED_MUTEX) made = order_begin(sweep);
    }
    for (uint32_t position = 0; made && position < sweep->timeline->length; position++) {
        sweep->position = position;
        uint32_t event = sweep->timeline->events[position];
        if (event == TIMELINE_NOTHING) continue;
        if (!take(sweep, event) || limits_late(sweep->limits)) break;
    }
    for (size_t each = 0; each < sweep->count; each++) configuration_free(sweep, &sweep->list[each]);
    sweep->count = sweep->under_way_count = 0;
    supply_free(sweep, &sweep->releases);
    supply_free(sweep, &sweep->acquires);
    numbers_free(sweep, sweep->last_firm, sweep->processes);
}

/* The shortest prefix that is not linearizable, between one that is and the whole. */
static void bisect(struct sweep *sweep) {
    uint32_t good = 0, bad = sweep->timeline->length - 1, guess = sweep->result->prefix;
    struct linearizable_result *result = sweep->result, found = *result, tried;
    while (bad - good > 1 && !limits_late(sweep->limits)) {
        uint32_t middle = guess > good && guess < bad ? guess : good + (bad - good) / 2;
        tried = (struct linearizable_result){.status = VERDICT_HOLDS, .configurations = found.configurations};
        sweep->timeline->prefix = middle;
        sweep->result = &tried;
        run(sweep);
        bool violated_here = tried.status == VERDICT_VIOLATED;
        guess = violated_here && middle == guess ? guess - 1 : 0; /* mostly it was right: then the next one ends it */
        if (violated_here) found = tried, bad = middle;
        else good = middle;
    }
    *result = found;
    result->prefix = bad;
    uint32_t last = sweep->timeline->events[bad];
    if (last != TIMELINE_NOTHING && last / 2 != result->operation) {
        linearizable_block(result, result->operation);
        result->operation = last / 2;
    }
}

void linearizable_owner(struct timeline *timeline, uint32_t processes, const struct linearizable_settings *settings,
                        struct limits *limits, struct linearizable_result *result) {
    struct sweep sweep = {.timeline = timeline,
                          .limits = limits,
                          .result = result,
                          .model = settings->model,
                          .keep_all = settings->keep_all,
                          .processes = processes};
    bool fenced = settings->model == MODEL_FENCED_MUTEX;
    if (!fenced || order_make(&sweep)) run(&sweep);
    if (fenced && result->status == VERDICT_VIOLATED) bisect(&sweep);
    order_free(&sweep);
    limits_free(limits, sweep.list, sweep.room * sizeof *sweep.list);
    limits_free(limits, sweep.under_way, sweep.under_way_room * sizeof *sweep.under_way);
}
