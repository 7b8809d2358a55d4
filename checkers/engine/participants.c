#include "checkers/engine/participants.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

static void *zeroed(size_t size) {
    void *thing = calloc(1, size);
    if (!thing) abort();
    return thing;
}

static void table_open(struct participants_table *table) {
    *table = (struct participants_table){.slots = zeroed(FIRST_SLOTS * sizeof *table->slots), .mask = FIRST_SLOTS - 1};
}

/* At most half full, so that looking for what is not there ends soon. */
static void participants_put(struct participants_table *table, uint64_t key, void *thing) {
    assert(!participants_find(table, key)->thing);
    *participants_find(table, key) = (struct participants_slot){key, thing};
    if (++table->count <= table->mask / 2) return;
    struct participants_table larger = {zeroed(2 * (table->mask + 1) * sizeof *table->slots), 2 * table->mask + 1,
                                        table->count};
    for (uint64_t each = 0; each <= table->mask; each++)
        if (table->slots[each].thing) *participants_find(&larger, table->slots[each].key) = table->slots[each];
    free(table->slots);
    *table = larger;
}

void participants_open(struct participants *participants, struct check *check) {
    participants->last_lock = &check->locks;
    participants->last_actor = &check->actors;
    table_open(&participants->locks);
    table_open(&participants->actors);
    table_open(&participants->members);
}

struct check_lock *participants_add_lock(struct participants *participants, uint32_t name) {
    struct check_lock *lock = zeroed(participants->lock_size);
    lock->name = name;
    lock->capacity = 1;
    *participants->last_lock = lock;
    participants->last_lock = &lock->next;
    participants_put(&participants->locks, name, lock);
    return lock;
}

struct check_actor *participants_add_actor(struct participants *participants, uint32_t name) {
    struct check_actor *actor = zeroed(participants->actor_size);
    actor->name = name;
    *participants->last_actor = actor;
    participants->last_actor = &actor->next;
    if (name < PARTICIPANTS_NEAR) participants->near[name] = actor;
    participants_put(&participants->actors, name, actor);
    return actor;
}

struct check_member *participants_add_member(struct participants *participants, uint32_t lock, uint32_t actor) {
    uint64_t key = (uint64_t)lock << 32 | actor;
    struct check_member *member = zeroed(participants->member_size);
    struct check_lock *known = participants_find(&participants->locks, lock)->thing;
    member->lock = known ? known : participants_add_lock(participants, lock);
    member->actor = participants_actor(participants, actor);
    member->next_of_lock = member->lock->members;
    member->lock->members = member;
    member->next_of_actor = member->actor->members;
    member->actor->members = member->actor->latest = member;
    participants_put(&participants->members, key, member);
    return member;
}

static void table_close(struct participants_table *table) {
    for (uint64_t each = 0; each <= table->mask; each++) free(table->slots[each].thing);
    free(table->slots);
}

void participants_close(struct participants *participants) {
    table_close(&participants->locks);
    table_close(&participants->actors);
    table_close(&participants->members);
}
