/* Who a history is about: locks, clients, and each client's side of each lock, found by the indices of their names.
 * Decision 0032. */
#pragma once

#include "checkers/engine/checker.h"
#include "checkers/engine/hash.h"

/* An open-addressed table from numbers to objects, which participants_close frees. */
struct participants_table {
    struct participants_slot {
        uint64_t key;
        void *thing; /* NULL: the slot is free */
    } * slots;
    uint64_t mask, count;
};

enum { PARTICIPANTS_NEAR = 1024 }; /* names are mostly defined at the beginning of a history: small numbers */

struct participants {
    struct check_actor *near[PARTICIPANTS_NEAR]; /* by name */
    struct participants_table locks, actors, members;
    size_t lock_size, actor_size, member_size; /* with the bytes that the checkers asked for */
    struct check_lock **last_lock;
    struct check_actor **last_actor;
};

/* Begins empty. Locks and actors are also listed in `check`. The caller has set the sizes, at least those of the
 * structs.
 */
void participants_open(struct participants *participants, struct check *check);
void participants_close(struct participants *participants);

/* Adds one that is not there yet. Valid until participants_close. */
struct check_lock *participants_add_lock(struct participants *participants, uint32_t name);
struct check_actor *participants_add_actor(struct participants *participants, uint32_t name);
struct check_member *participants_add_member(struct participants *participants, uint32_t lock, uint32_t actor);

/* The slot of a key, or the free one where it would stand. */
static inline struct participants_slot *participants_find(const struct participants_table *table, uint64_t key) {
    uint64_t place = hash_mix(0, key) & table->mask;
    while (table->slots[place].key != key && table->slots[place].thing) place = (place + 1) & table->mask;
    return &table->slots[place];
}

/* The one of this name, which is added if it is not there yet. */
static inline struct check_actor *participants_actor(struct participants *participants, uint32_t name) {
    struct check_actor *actor = name < PARTICIPANTS_NEAR
                                    ? participants->near[name]
                                    : (struct check_actor *)participants_find(&participants->actors, name)->thing;
    return actor ? actor : participants_add_actor(participants, name);
}

static inline struct check_member *participants_member(struct participants *participants, uint32_t lock,
                                                       uint32_t actor) {
    struct check_member *member = participants_actor(participants, actor)->latest;
    if (member && member->lock->name == lock) return member;
    member = participants_find(&participants->members, (uint64_t)lock << 32 | actor)->thing;
    return member ? (member->actor->latest = member) : participants_add_member(participants, lock, actor);
}
