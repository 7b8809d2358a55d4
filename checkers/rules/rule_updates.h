/* Writes of the same data by two requests that hold no common lock: what rules about them start from. */
#pragma once

#include "checkers/rules/rule_holds.h"

/* A write of a row or key that was there, from the read that it rests on. */
struct rule_update {
    int request;
    size_t from, write;
    bool rests_on_read; /* it wrote what it had computed from what it read, and nothing refuses it if that is stale */
};

struct rule_update_list {
    struct rule_update *of; /* owned by the caller */
    size_t count;
};

struct rule_update_list rule_updates_find(const struct rule_pass *pass);
bool update_is_held(const struct rule_hold *hold, const struct rule_update *update);
/* Whether both write the same, the first rests on a read, and nothing keeps the second from falling in between. */
bool updates_collide(const struct rule_pass *pass, const struct rule_update *one, const struct rule_update *other);
/* Whether two updates that collide do one piece of work twice: done_twice.c. */
bool updates_are_done_twice(const struct rule_pass *pass, const struct rule_update *one,
                            const struct rule_update *other);
