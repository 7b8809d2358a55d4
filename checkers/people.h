/* Who a history is about: locks, clients, and each client's side of each lock, found by the indices of their names. */
#ifndef LOCKSTORM_CHECKERS_PEOPLE_H
#define LOCKSTORM_CHECKERS_PEOPLE_H

#include "checkers/checker.h"

/* An open-addressed table from numbers to things that are the caller's. */
struct people_table {
    struct people_slot {
        uint64_t key;
        void *thing; /* NULL: the slot is free */
    } * slots;
    uint64_t mask, count;
};

enum { PEOPLE_NEAR = 1024 }; /* names are mostly defined at the beginning of a history: small numbers */

struct people {
    struct check_actor *near[PEOPLE_NEAR]; /* by name */
    struct people_table locks, actors, members;
    size_t lock_size, actor_size, member_size; /* with the room that the checkers asked for */
    struct check_lock **last_lock;
    struct check_actor **last_actor;
};

/* Nobody yet; locks and actors are listed in `check`. The sizes are set by the caller, at least that of each struct. */
void people_open(struct people *people, struct check *check);
void people_close(struct people *people);

/* Adds one that has not been seen. Valid until people_close. */
struct check_lock *people_add_lock(struct people *people, uint32_t name);
struct check_actor *people_add_actor(struct people *people, uint32_t name);
struct check_member *people_add_member(struct people *people, uint32_t lock, uint32_t actor);

/* The slot of a key, or the free one where it would stand. Fibonacci hashing: a product with 2^64 / golden ratio. */
static inline struct people_slot *people_find(const struct people_table *table, uint64_t key) {
    uint64_t product = key * 0x9e3779b97f4a7c15u, place = (product ^ (product >> 32)) & table->mask;
    while (table->slots[place].key != key && table->slots[place].thing) place = (place + 1) & table->mask;
    return &table->slots[place];
}

/* The one of this name, which is added if it has not been seen. */
static inline struct check_actor *people_actor(struct people *people, uint32_t name) {
    struct check_actor *actor =
        name < PEOPLE_NEAR ? people->near[name] : (struct check_actor *)people_find(&people->actors, name)->thing;
    return actor ? actor : people_add_actor(people, name);
}

static inline struct check_member *people_member(struct people *people, uint32_t lock, uint32_t actor) {
    struct check_member *member = people_actor(people, actor)->latest;
    if (member && member->lock->name == lock) return member;
    member = people_find(&people->members, (uint64_t)lock << 32 | actor)->thing;
    return member ? (member->actor->latest = member) : people_add_member(people, lock, actor);
}

#endif
