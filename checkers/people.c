#include "checkers/people.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

static void *zeroed(size_t size) {
    void *thing = calloc(1, size);
    if (!thing) abort();
    return thing;
}

/* Fibonacci hashing: the high bits of a product with 2^64 / golden ratio. */
static uint64_t place_of(uint64_t key) {
    uint64_t product = key * 0x9e3779b97f4a7c15u;
    return product ^ (product >> 32);
}

static struct people_slot *find(const struct people_table *table, uint64_t key) {
    uint64_t place = place_of(key) & table->mask;
    while (table->slots[place].thing && table->slots[place].key != key) place = (place + 1) & table->mask;
    return &table->slots[place];
}

static void table_open(struct people_table *table) {
    *table = (struct people_table){zeroed(FIRST_SLOTS * sizeof *table->slots), FIRST_SLOTS - 1, 0};
}

/* At most half full, so that looking for what is not there ends soon. */
static void put(struct people_table *table, uint64_t key, void *thing) {
    *find(table, key) = (struct people_slot){key, thing};
    if (2 * ++table->count <= table->mask) return;
    struct people_table larger = {zeroed(2 * (table->mask + 1) * sizeof *table->slots), 2 * table->mask + 1,
                                  table->count};
    for (uint64_t each = 0; each <= table->mask; each++)
        if (table->slots[each].thing) *find(&larger, table->slots[each].key) = table->slots[each];
    free(table->slots);
    *table = larger;
}

void people_open(struct people *people, struct check *check) {
    people->check = check;
    people->last_lock = &check->locks;
    people->last_actor = &check->actors;
    table_open(&people->locks);
    table_open(&people->actors);
    table_open(&people->members);
}

struct check_lock *people_lock(struct people *people, uint32_t name) {
    struct check_lock *lock = find(&people->locks, name)->thing;
    if (lock) return lock;
    lock = zeroed(people->lock_size);
    lock->name = name;
    lock->capacity = 1;
    *people->last_lock = lock;
    people->last_lock = &lock->next;
    put(&people->locks, name, lock);
    return lock;
}

struct check_actor *people_actor(struct people *people, uint32_t name) {
    struct check_actor *actor = find(&people->actors, name)->thing;
    if (actor) return actor;
    actor = zeroed(people->actor_size);
    actor->name = name;
    *people->last_actor = actor;
    people->last_actor = &actor->next;
    put(&people->actors, name, actor);
    return actor;
}

struct check_member *people_member(struct people *people, uint32_t lock, uint32_t actor) {
    uint64_t key = (uint64_t)lock << 32 | actor;
    struct check_member *member = find(&people->members, key)->thing;
    if (member) return member;
    member = zeroed(people->member_size);
    member->lock = people_lock(people, lock);
    member->actor = people_actor(people, actor);
    member->next_of_lock = member->lock->members;
    member->lock->members = member;
    member->next_of_actor = member->actor->members;
    member->actor->members = member;
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
