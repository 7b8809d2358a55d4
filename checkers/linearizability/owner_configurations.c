#include "checkers/linearizability/owner_configurations.h"

#include <assert.h>
#include <string.h>

void owner_configuration_free(struct owner_sweep *sweep, struct owner_configuration *it) {
    limits_free(sweep->limits, it->differences, it->difference_room * sizeof *it->differences);
    token_place_free(&it->tokens, sweep->limits);
}

/* A copy of bytes; NULL without bytes, or past the limit. */
static void *owner_configurations_copy(struct owner_sweep *sweep, const void *bytes, size_t size) {
    void *made = size ? limits_resize(sweep->limits, NULL, 0, size) : NULL;
    return made ? memcpy(made, bytes, size) : NULL;
}

struct owner_configuration *owner_fork(struct owner_sweep *sweep, size_t index) {
    if (!limits_more(sweep->limits, sweep->list, sweep->count, sweep->room)) return NULL;
    const struct owner_configuration *from = &sweep->list[index];
    struct owner_configuration *made = &sweep->list[sweep->count++];
    *made = *from;
    made->differences =
        owner_configurations_copy(sweep, from->differences, from->difference_count * sizeof *from->differences);
    made->tokens.gaps =
        owner_configurations_copy(sweep, from->tokens.gaps, from->tokens.gap_count * sizeof *from->tokens.gaps);
    if (!made->differences) made->difference_count = 0;
    if (!made->tokens.gaps) made->tokens.gap_count = 0;
    made->difference_room = made->difference_count;
    made->tokens.gap_room = made->tokens.gap_count;
    return made;
}

/* --- what a configuration has used --- */

static struct owner_difference *difference_find(const struct owner_configuration *it, uint32_t process) {
    for (size_t each = 0; each < it->difference_count; each++)
        if (it->differences[each].process == process) return &it->differences[each];
    return NULL;
}

struct owner_difference *owner_difference_get(struct owner_sweep *sweep, struct owner_configuration *it,
                                              uint32_t process) {
    static struct owner_difference nowhere;
    struct owner_difference *found = difference_find(it, process);
    if (found) return found;
    if (!limits_more(sweep->limits, it->differences, it->difference_count, it->difference_room)) return &nowhere;
    it->differences[it->difference_count] = (struct owner_difference){.process = process};
    return &it->differences[it->difference_count++];
}

uint32_t owner_releases_used(const struct owner_sweep *sweep, const struct owner_configuration *it, uint32_t process) {
    const struct owner_difference *found = difference_find(it, process);
    return sweep->releases.used[process] + (found ? found->releases : 0);
}

uint32_t owner_acquires_used(const struct owner_sweep *sweep, const struct owner_configuration *it, uint32_t process) {
    const struct owner_difference *found = difference_find(it, process);
    return sweep->acquires.used[process] + (found ? found->acquires : 0);
}

bool owner_is_free_hold(const struct owner_sweep *sweep, const struct owner_configuration *it) {
    return it->holder != NOBODY && sweep->timeline->object->list[it->grant].kind == OPERATION_RENEW;
}

bool owner_may_lapse(const struct owner_sweep *sweep, const struct owner_configuration *it) {
    assert(it->holder != NOBODY && it->depth > 0); /* `grant` outlives the hold */
    return it->lapses <= sweep->position;
}

bool owner_can_let_go(const struct owner_sweep *sweep, const struct owner_configuration *it) {
    if (owner_may_lapse(sweep, it)) return true;
    return owner_releases_used(sweep, it, it->holder) + it->depth <= sweep->releases.called[it->holder];
}

void owner_let_go(struct owner_sweep *sweep, struct owner_configuration *it) {
    if (!owner_may_lapse(sweep, it)) owner_difference_get(sweep, it, it->holder)->releases += it->depth;
    owner_hold_end(sweep, it);
}

void owner_hold_end(struct owner_sweep *sweep, struct owner_configuration *it) {
    struct token_place *place = &it->tokens;
    if (place->newest < place->known) {
        /* Before a hold of unknown token there is room for those that it need not have had itself. */
        uint64_t room = (uint64_t)place->known - (uint64_t)place->newest;
        if (owner_is_free_hold(sweep, it) && owner_owes_any(it))
            token_place_add_gap(place, it->since, room, sweep->limits);
        place->newest = place->known;
    }
    it->holder = NOBODY;
}

bool owner_owes(const struct owner_configuration *it, uint32_t process) {
    const struct owner_difference *found = difference_find(it, process);
    return found && found->owes;
}

bool owner_owes_any(const struct owner_configuration *it) {
    for (size_t each = 0; each < it->difference_count; each++)
        if (it->differences[each].owes) return true;
    return false;
}

bool owner_called_between(const struct owner_sweep *sweep, uint32_t process, uint32_t after, uint32_t before) {
    for (size_t each = 0; each < sweep->under_way_count; each++) {
        const struct operation *operation = &sweep->timeline->object->list[sweep->under_way[each]];
        /* With leases of known length, an earlier moment may not do: the hold could not end there. */
        bool called = operation->call < before && (sweep->timed || operation->call >= after);
        if (operation->process != process && called) return true;
    }
    return false;
}

/* --- fewer configurations --- */

/* A process without firm operations to come, which does not hold: what it has used does not matter any more. */
static void forget_finished(struct owner_sweep *sweep, struct owner_configuration *it) {
    for (size_t each = it->difference_count; each-- > 0;) {
        uint32_t process = it->differences[each].process;
        if (process == it->holder || sweep->last_firm[process] > sweep->position) continue;
        it->differences[each] = it->differences[--it->difference_count];
    }
}

/* Moves what all have used to where all have it. */
static void fold(struct owner_sweep *sweep) {
    struct owner_configuration *first = &sweep->list[0];
    for (size_t each = first->difference_count; each-- > 0;) {
        uint32_t process = first->differences[each].process;
        uint32_t releases = first->differences[each].releases, acquires = first->differences[each].acquires;
        for (size_t other = 1; other < sweep->count; other++) {
            const struct owner_difference *found = difference_find(&sweep->list[other], process);
            if (!found || found->releases < releases) releases = found ? found->releases : 0;
            if (!found || found->acquires < acquires) acquires = found ? found->acquires : 0;
        }
        sweep->releases.used[process] += releases;
        sweep->acquires.used[process] += acquires;
        for (size_t other = 0; other < sweep->count; other++) {
            struct owner_configuration *it = &sweep->list[other];
            struct owner_difference *found = difference_find(it, process);
            if (!found) continue;
            found->releases -= releases;
            found->acquires -= acquires;
            if (!found->releases && !found->acquires && !found->owes) *found = it->differences[--it->difference_count];
        }
    }
}

/* Has `one` used no more, and does it owe no more, than `other`? */
static bool owner_configurations_uses_no_more(const struct owner_configuration *one,
                                              const struct owner_configuration *other) {
    for (size_t each = 0; each < one->difference_count; each++) {
        const struct owner_difference *mine = &one->differences[each], *theirs = difference_find(other, mine->process);
        if (mine->releases > (theirs ? theirs->releases : 0) || mine->acquires > (theirs ? theirs->acquires : 0))
            return false;
        if (mine->owes && !(theirs && theirs->owes)) return false;
    }
    return true;
}

/* Can `one` do all that `other` can? With another holder, or none: it does now what `other` has used more, and that
 * makes the lock free for a moment; to have the hold of `other` itself, it needs a token for a free acquire. With the
 * same holder, what is under way may want a moment that only `other` has had. (Where the hold of `other` alone began
 * with a free acquire, `one` holds since before: it has left the free release and acquire that `other` has used, or a
 * hold that may end, and can do now what `other` could do before its hold.) A hold that ended by itself has used
 * nothing: then the hold of `other` must be there in `one`, as deep, or `one` can end its own. */
static bool is_as_good(const struct owner_sweep *sweep, const struct owner_configuration *one,
                       const struct owner_configuration *other) {
    if (!owner_configurations_uses_no_more(one, other) || !token_place_is_as_good(&one->tokens, &other->tokens))
        return false;
    /* With a lease of known length a renewal may bind the hold that `one` has, and `other` does not have. */
    if (sweep->timed && one->holder != other->holder) return false;
    if (sweep->leases && one->holder != other->holder) return other->holder == NOBODY && owner_may_lapse(sweep, one);
    bool lacks_token = sweep->model == MODEL_FENCED_MUTEX && one->tokens.newest >= other->tokens.newest;
    if (lacks_token && other->holder != NOBODY && one->holder != other->holder) return false;
    if (one->holder == NOBODY || one->holder != other->holder) return true;
    if (sweep->leases && one->depth < other->depth) return false;
    /* A renewal may make either last longer, and then it matters how many releases end it. */
    if (sweep->timed && (one->depth != other->depth || one->lapses > other->lapses)) return false;
    return one->since >= other->since || !owner_called_between(sweep, one->holder, one->since, other->since);
}

static void drop_dead(struct owner_sweep *sweep) {
    size_t kept = 0;
    for (size_t each = 0; each < sweep->count; each++) {
        if (sweep->list[each].dead) owner_configuration_free(sweep, &sweep->list[each]);
        else sweep->list[kept++] = sweep->list[each];
    }
    sweep->count = kept;
}

void owner_prune(struct owner_sweep *sweep) {
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
