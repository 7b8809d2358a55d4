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

struct people {
    struct check *check;
    struct people_table locks, actors, members;
    size_t lock_size, actor_size, member_size; /* with the room that the checkers asked for */
    struct check_lock **last_lock;
    struct check_actor **last_actor;
};

/* Nobody yet. The sizes are set by the caller, at least that of each struct. */
void people_open(struct people *people, struct check *check);
void people_close(struct people *people);

/* The one of this name, which is added if it has not been seen. Valid until people_close. */
struct check_lock *people_lock(struct people *people, uint32_t name);
struct check_actor *people_actor(struct people *people, uint32_t name);
struct check_member *people_member(struct people *people, uint32_t lock, uint32_t actor);

#endif
