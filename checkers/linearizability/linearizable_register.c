/* A register: read, write, compare-and-set, add. Deciding this exactly is NP-complete, so it is a search with limits:
 * the just-in-time linearization of Lowe ("Testing for linearizability", 2017), breadth first. It walks through the
 * events and keeps all configurations that explain the events so far: the value, which firm operations under way are
 * placed, and how many free ones of each sort are used. An operation is placed at its return at the latest; before it,
 * any others that are under way may be placed. So memory grows with what is under way at a time, not with the length of
 * the history.
 *
 * What the search leaves out, and why nothing is lost:
 *  - a free read changes nothing and need not be explained;
 *  - a read is placed as soon as the value fits: it changes nothing for the others;
 *  - a free write or cas is placed only directly before an operation that needs its value (a read, a cas): unseen, it
 *    need not happen;
 *  - where there are adds, any free one may be what an add computes from, so it is placed before whatever is placed;
 *  - free operations of one sort (kind, value expected, value set) are alike, so they are counted;
 *  - a configuration that differs from another only in having used more free operations is dropped. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/engine/hash.h"
#include "checkers/linearizability/linearizable.h"

enum { SLOTS = 64, COMPARED = 64 };

struct register_configuration {
    uint64_t placed; /* a bit for each slot */
    int64_t value;
    uint32_t used; /* number of a list of uses */
    uint32_t reserved;
};

/* A set of configurations, in order of arrival. */
struct set {
    struct register_configuration *list;
    size_t count, room;
    uint32_t *table; /* places in the list + 1 */
    size_t table_room;
};

/* Sorts of free operations. */
struct sort {
    int64_t value, from;
    uint32_t kind, called;
};

struct use {
    uint32_t sort, count;
};

/* All lists of uses that occurred, each once; list 0 is empty. */
struct uses {
    struct use *pool;
    size_t pool_count, pool_room;
    uint32_t *starts; /* of a list in the pool; it ends where the next one starts */
    size_t count, room;
    uint32_t *table;
    size_t table_room;
};

struct register_search {
    const struct timeline *timeline;
    struct limits *limits;
    struct linearizable_result *result;
    uint32_t slots[SLOTS]; /* operations under way */
    uint64_t busy;
    struct sort *sorts;
    size_t sort_count, sort_room;
    bool has_adds;
    struct uses uses;
    struct set now, next, seen;
};

static const struct operation *in_slot(const struct register_search *search, unsigned slot) {
    return &search->timeline->object->list[search->slots[slot]];
}

/* --- sets --- */

static uint64_t configuration_hash(const struct register_configuration *it) {
    return hash_mix(hash_mix(hash_mix(1, it->placed), (uint64_t)it->value), it->used);
}

static bool register_table_grow(struct register_search *search, uint32_t **table, size_t *room) {
    size_t wanted = *room ? *room * 2 : 64;
    void *grown = limits_resize(search->limits, *table, *room * sizeof **table, wanted * sizeof **table);
    if (!grown) return false;
    *table = grown;
    *room = wanted;
    memset(grown, 0, wanted * sizeof **table);
    return true;
}

static void set_place(struct set *set, size_t index) {
    size_t place = configuration_hash(&set->list[index]) & (set->table_room - 1);
    while (set->table[place]) place = (place + 1) & (set->table_room - 1);
    set->table[place] = (uint32_t)index + 1;
}

/* Past the limit it is not kept. */
static void set_add(struct register_search *search, struct set *set, const struct register_configuration *it) {
    if (2 * (set->count + 1) > set->table_room) {
        if (!register_table_grow(search, &set->table, &set->table_room)) return;
        for (size_t each = 0; each < set->count; each++) set_place(set, each);
    }
    size_t place = configuration_hash(it) & (set->table_room - 1);
    for (; set->table[place]; place = (place + 1) & (set->table_room - 1))
        if (memcmp(&set->list[set->table[place] - 1], it, sizeof *it) == 0) return;
    if (!limits_more(search->limits, set->list, set->count, set->room)) return;
    set->list[set->count++] = *it;
    set->table[place] = (uint32_t)set->count;
}

static void set_clear(struct set *set) {
    set->count = 0;
    if (set->table) memset(set->table, 0, set->table_room * sizeof *set->table);
}

static void set_free(struct register_search *search, struct set *set) {
    limits_free(search->limits, set->list, set->room * sizeof *set->list);
    limits_free(search->limits, set->table, set->table_room * sizeof *set->table);
}

/* --- free operations --- */

static const struct use *uses_of(const struct uses *uses, uint32_t list, size_t *count) {
    size_t start = uses->starts[list], end = list + 1 < uses->count ? uses->starts[list + 1] : uses->pool_count;
    *count = end - start;
    return uses->pool + start;
}

static uint32_t use_count(const struct uses *uses, uint32_t list, uint32_t sort) {
    size_t count;
    const struct use *use = uses_of(uses, list, &count);
    for (size_t each = 0; each < count; each++)
        if (use[each].sort == sort) return use[each].count;
    return 0;
}

static uint64_t use_hash(const struct use *use, size_t count) {
    uint64_t hash = count;
    for (size_t each = 0; each < count; each++) hash = hash_mix(hash, (uint64_t)use[each].sort << 32 | use[each].count);
    return hash;
}

/* *number: that of the list at the end of the pool, which is removed if an equal one is before it. False: a limit is
 * reached. */
static bool uses_settle(struct register_search *search, size_t start, uint32_t *number) {
    struct uses *uses = &search->uses;
    assert(start <= uses->pool_count);
    size_t count = uses->pool_count - start, known;
    if (2 * (uses->count + 1) > uses->table_room) {
        if (!register_table_grow(search, &uses->table, &uses->table_room)) return false;
        for (uint32_t each = 0; each < uses->count; each++) {
            size_t length = (each + 1 < uses->count ? uses->starts[each + 1] : start) - uses->starts[each];
            size_t place = use_hash(uses->pool + uses->starts[each], length) & (uses->table_room - 1);
            while (uses->table[place]) place = (place + 1) & (uses->table_room - 1);
            uses->table[place] = each + 1;
        }
    }
    size_t place = use_hash(uses->pool + start, count) & (uses->table_room - 1);
    for (; uses->table[place]; place = (place + 1) & (uses->table_room - 1)) {
        uint32_t each = uses->table[place] - 1;
        known = (each + 1 < uses->count ? uses->starts[each + 1] : start) - uses->starts[each];
        if (known != count ||
            (count && memcmp(uses->pool + uses->starts[each], uses->pool + start, count * sizeof *uses->pool) != 0))
            continue;
        uses->pool_count = start;
        *number = each;
        return true;
    }
    if (!limits_more(search->limits, uses->starts, uses->count, uses->room)) return false;
    uses->starts[uses->count] = (uint32_t)start;
    uses->table[place] = (uint32_t)++uses->count;
    *number = (uint32_t)uses->count - 1;
    return true;
}

/* *number: that of the list with one more use of a sort. False: a limit is reached. */
static bool uses_more(struct register_search *search, uint32_t list, uint32_t sort, uint32_t *number) {
    struct uses *uses = &search->uses;
    size_t start = uses->pool_count, count;
    uses_of(uses, list, &count);
    for (size_t each = 0; each <= count; each++, uses->pool_count++) {
        if (!limits_more(search->limits, uses->pool, uses->pool_count, uses->pool_room)) return false;
        uses->pool[uses->pool_count] =
            each < count ? uses->pool[uses->starts[list] + each] : (struct use){.sort = sort};
    }
    struct use *copy = uses->pool + start;
    size_t place = count;
    while (place > 0 && copy[place - 1].sort > sort) place--;
    if (place > 0 && copy[place - 1].sort == sort) {
        copy[place - 1].count++;
        uses->pool_count--;
    } else {
        memmove(copy + place + 1, copy + place, (count - place) * sizeof *copy);
        copy[place] = (struct use){.sort = sort, .count = 1};
    }
    return uses_settle(search, start, number);
}

/* --- placing --- */

/* Does an operation of a kind, and what does it make of the value? */
static bool register_takes(uint32_t kind, int64_t operand, int64_t from, int64_t *value) {
    if (kind == OPERATION_READ) return *value == operand;
    if (kind == OPERATION_ADD) return *value != OPERATION_NIL && !__builtin_add_overflow(*value, operand, value);
    if (kind == OPERATION_CAS && *value != from) return false;
    *value = operand;
    return true;
}

static bool register_allows(const struct operation *operation, int64_t value) {
    return register_takes(operation->kind, operation->value, operation->from, &value);
}

/* Places the reads under way that read the value. */
static void place_reads(const struct register_search *search, struct register_configuration *it) {
    for (uint64_t left = search->busy & ~it->placed; left; left &= left - 1) {
        unsigned slot = (unsigned)__builtin_ctzll(left);
        const struct operation *operation = in_slot(search, slot);
        if (operation->kind == OPERATION_READ && operation->value == it->value) it->placed |= (uint64_t)1 << slot;
    }
}

/* Does any operation need the value? */
static bool is_wanted(const struct register_search *search, const struct register_configuration *it, int64_t value) {
    if (search->has_adds) return true;
    for (uint64_t left = search->busy & ~it->placed; left; left &= left - 1) {
        const struct operation *operation = in_slot(search, (unsigned)__builtin_ctzll(left));
        if (operation->kind != OPERATION_WRITE && register_allows(operation, value)) return true;
    }
    for (uint32_t each = 0; each < search->sort_count; each++) {
        const struct sort *sort = &search->sorts[each];
        if (sort->kind == OPERATION_CAS && sort->from == value &&
            use_count(&search->uses, it->used, each) < sort->called)
            return true;
    }
    return false;
}

/* Keeps a configuration in which the operation of `slot` is placed, and goes on with one in which it is not. */
static void reached(struct register_search *search, struct register_configuration it, unsigned slot) {
    uint64_t bit = (uint64_t)1 << slot;
    place_reads(search, &it);
    if (!(it.placed & bit)) {
        set_add(search, &search->seen, &it);
        return;
    }
    it.placed &= ~bit;
    set_add(search, &search->next, &it);
}

/* All ways to place the operation of `slot` from one configuration. */
static void expand(struct register_search *search, const struct register_configuration *from, unsigned slot) {
    set_clear(&search->seen);
    set_add(search, &search->seen, from);
    for (size_t each = 0; each < search->seen.count && !limits_late(search->limits); each++) {
        struct register_configuration it = search->seen.list[each];
        for (uint64_t left = search->busy & ~it.placed; left; left &= left - 1) {
            unsigned other = (unsigned)__builtin_ctzll(left);
            const struct operation *operation = in_slot(search, other);
            struct register_configuration then = it;
            if (!register_takes(operation->kind, operation->value, operation->from, &then.value)) continue;
            then.placed |= (uint64_t)1 << other;
            reached(search, then, slot);
        }
        for (uint32_t sort = 0; sort < search->sort_count; sort++) {
            const struct sort *free = &search->sorts[sort];
            struct register_configuration then = it;
            if (!register_takes(free->kind, free->value, free->from, &then.value) || then.value == it.value) continue;
            if (use_count(&search->uses, it.used, sort) >= free->called || !is_wanted(search, &it, then.value))
                continue;
            if (!uses_more(search, it.used, sort, &then.used)) return;
            reached(search, then, slot);
        }
    }
}

/* --- fewer configurations --- */

static int by_state(const void *left, const void *right) {
    const struct register_configuration *one = left, *two = right;
    if (one->placed != two->placed) return one->placed < two->placed ? -1 : 1;
    if (one->value != two->value) return one->value < two->value ? -1 : 1;
    return one->used < two->used ? -1 : one->used > two->used;
}

static bool register_uses_no_more(const struct register_search *search, uint32_t one, uint32_t other) {
    size_t count;
    const struct use *use = uses_of(&search->uses, one, &count);
    for (size_t each = 0; each < count; each++)
        if (use[each].count > use_count(&search->uses, other, use[each].sort)) return false;
    return true;
}

/* Moves the configurations of `next` that no other one makes needless to `now`. */
static void prune(struct register_search *search) {
    struct set *next = &search->next;
    set_clear(&search->now);
    if (next->count > 1) qsort(next->list, next->count, sizeof *next->list, by_state);
    for (size_t each = 0, first = 0; each < next->count; each++) {
        const struct register_configuration *it = &next->list[each];
        if (next->list[first].placed != it->placed || next->list[first].value != it->value) first = each;
        bool needless = false;
        for (size_t other = first; other < next->count && other < first + COMPARED && !needless; other++) {
            const struct register_configuration *that = &next->list[other];
            if (that->placed != it->placed || that->value != it->value) break;
            needless = other != each && register_uses_no_more(search, that->used, it->used);
        }
        if (!needless) set_add(search, &search->now, it);
    }
    set_clear(next);
    if (search->now.count > search->result->configurations) search->result->configurations = search->now.count;
}

/* --- events --- */

/* A write can always happen at its return; so can an add, to a number. */
static void register_violated(struct register_search *search, uint32_t index) {
    const struct operation *operation = &search->timeline->object->list[index];
    char why[240];
    size_t used =
        (size_t)snprintf(why, sizeof why, "nothing that may have happened by its return leaves the value that it %s",
                         operation->kind == OPERATION_READ ? "read" : "expected");
    for (size_t each = 0; each < search->now.count && each < BLOCKERS_KEPT; each++) {
        int64_t value = search->now.list[each].value;
        const char *lead = each ? "," : "; before it, the register can hold";
        used += value == OPERATION_NIL
                    ? (size_t)snprintf(why + used, sizeof why - used, "%s nil", lead)
                    : (size_t)snprintf(why + used, sizeof why - used, "%s %lld", lead, (long long)value);
    }
    linearizable_violate(search->result, index, operation->end, why);
    for (uint64_t left = search->busy; left; left &= left - 1) {
        uint32_t other = search->slots[__builtin_ctzll(left)];
        if (other != index) linearizable_block(search->result, other);
    }
}

static bool register_called(struct register_search *search, uint32_t index) {
    const struct operation *operation = &search->timeline->object->list[index];
    if (timeline_standing(search->timeline, operation) == STANDS_FREE) {
        if (operation->kind == OPERATION_READ) return true;
        for (size_t each = 0; each < search->sort_count; each++) {
            struct sort *sort = &search->sorts[each];
            if (sort->kind != operation->kind || sort->value != operation->value || sort->from != operation->from)
                continue;
            sort->called++;
            return true;
        }
        if (!limits_more(search->limits, search->sorts, search->sort_count, search->sort_room)) return false;
        search->sorts[search->sort_count++] = (struct sort){operation->value, operation->from, operation->kind, 1};
        return true;
    }
    if (search->busy == UINT64_MAX) {
        snprintf(search->result->fault, sizeof search->result->fault, "more than %d operations are under way at once",
                 SLOTS);
        search->result->status = VERDICT_INCONCLUSIVE;
        return false;
    }
    unsigned slot = (unsigned)__builtin_ctzll(~search->busy);
    search->slots[slot] = index;
    search->busy |= (uint64_t)1 << slot;
    if (operation->kind != OPERATION_READ) return true;
    for (size_t each = 0; each < search->now.count; each++)
        if (search->now.list[each].value == operation->value) search->now.list[each].placed |= (uint64_t)1 << slot;
    return true;
}

static bool returned(struct register_search *search, uint32_t index) {
    unsigned slot = 0;
    for (; !(search->busy >> slot & 1) || search->slots[slot] != index; slot++) assert(slot < SLOTS - 1);
    uint64_t bit = (uint64_t)1 << slot;
    bool moved = false;
    for (size_t each = 0; each < search->now.count && !moved; each++) moved = !(search->now.list[each].placed & bit);
    if (!moved) {
        for (size_t each = 0; each < search->now.count; each++) search->now.list[each].placed &= ~bit;
    } else {
        for (size_t each = 0; each < search->now.count && !limits_late(search->limits); each++) {
            struct register_configuration it = search->now.list[each];
            if (it.placed & bit) it.placed &= ~bit, set_add(search, &search->next, &it);
            else expand(search, &it, slot);
        }
        if (search->next.count == 0 && !search->limits->exceeded[0]) {
            register_violated(search, index);
            return false;
        }
        prune(search);
    }
    search->busy &= ~bit;
    return true;
}

void linearizable_register(struct timeline *timeline, const struct linearizable_settings *settings,
                           struct limits *limits, struct linearizable_result *result) {
    struct register_search *search = limits_resize(limits, NULL, 0, sizeof *search);
    if (!search) return;
    *search = (struct register_search){.timeline = timeline, .limits = limits, .result = result};
    struct register_configuration first = {.value = settings->initial};
    uint32_t empty;
    struct uses *uses = &search->uses;
    bool going = limits_more(limits, uses->pool, 0, uses->pool_room) && uses_settle(search, 0, &empty);
    set_add(search, &search->now, &first);
    for (size_t each = 0; each < timeline->object->count; each++)
        search->has_adds |= timeline->object->list[each].kind == OPERATION_ADD;
    for (uint32_t position = 0; going && position < timeline->length && !limits_late(limits); position++) {
        uint32_t event = timeline->events[position];
        if (event == TIMELINE_NOTHING) continue;
        going = event % 2 ? returned(search, event / 2) : register_called(search, event / 2);
    }
    set_free(search, &search->now);
    set_free(search, &search->next);
    set_free(search, &search->seen);
    limits_free(limits, search->sorts, search->sort_room * sizeof *search->sorts);
    limits_free(limits, uses->pool, uses->pool_room * sizeof *uses->pool);
    limits_free(limits, uses->starts, uses->room * sizeof *uses->starts);
    limits_free(limits, uses->table, uses->table_room * sizeof *uses->table);
    limits_free(limits, search, sizeof *search);
}
