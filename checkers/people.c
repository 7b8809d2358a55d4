#include "checkers/people.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

static void *zeroed(size_t size) {
    void *thing = calloc(1, size);
    if (!thing) abort();
    return thing;
}

static void table_open(struct people_table *table) {
    *table = (struct people_table){.slots = zeroed(FIRST_SLOTS * sizeof *table->slots), .mask = FIRST_SLOTS - 1};
}

/* At most half full, so that looking for what is not there ends soon. */
static void put(struct people_table *table, uint64_t key, void *thing) {
    *people_find(table, key) = (struct people_slot){key, thing};
    if (++table->count <= table->mask / 2) return;
    struct people_table larger = {zeroed(2 * (table->mask + 1) * sizeof *table->slots), 2 * table->mask + 1,
                                  table->count};
    for (uint64_t each = 0; each <= table->mask; each++)
        if (table->slots[each].thing) *people_find(&larger, table->slots[each].key) = table->slots[each];
    free(table->slots);
    *table = larger;
}

void people_open(struct people *people, struct check *check) {
    people->last_lock = &check->locks;
    people->last_actor = &check->actors;
    table_open(&people->locks);
    table_open(&people->actors);
    table_open(&people->members);
}

struct check_lock *people_add_lock(struct people *people, uint32_t name) {
    struct check_lock *lock = zeroed(people->lock_size);
    lock->name = name;
    lock->capacity = 1;
    *people->last_lock = lock;
    people->last_lock = &lock->next;
    put(&people->locks, name, lock);
    return lock;
}

struct check_actor *people_add_actor(struct people *people, uint32_t name) {
    struct check_actor *actor = zeroed(people->actor_size);
    actor->name = name;
    *people->last_actor = actor;
    people->last_actor = &actor->next;
    if (name < PEOPLE_NEAR) people->near[name] = actor;
    put(&people->actors, name, actor);
    return actor;
}

struct check_member *people_add_member(struct people *people, uint32_t lock, uint32_t actor) {
    uint64_t key = (uint64_t)lock << 32 | actor;
    struct check_member *member = zeroed(people->member_size);
    struct check_lock *known = people_find(&people->locks, lock)->thing;
    member->lock = known ? known : people_add_lock(people, lock);
    member->actor = people_actor(people, actor);
    member->next_of_lock = member->lock->members;
    member->lock->members = member;
    member->next_of_actor = member->actor->members;
    member->actor->members = member->actor->latest = member;
    put(&people->members, key, member);
    return member;
}

static void table_close(struct people_table *table) {
    for (uint64_t each = 0; each <= table->mask; each++) free(table->slots[each].thing);
    free(table->slots);
}

void people_close(struct people *people) {
    table_close(&people->locks);
    table_close(&people->actors);
    table_close(&people->members);
}
