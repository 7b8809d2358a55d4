/* Two requests that write the same data and hold no common lock. One of them writes what it has computed from what it
 * read: the other's effect is lost when it falls in between. As the locksets of Eraser, with two differences: a request
 * is a thread, and data that only one request has written, or that others only read, accuse nobody. */
#include <stdlib.h>

#include "checkers/rules/rule_list.h"
#include "checkers/rules/rule_updates.h"

static const char *update_lock(const struct rule_pass *pass, const struct rule_update *update) {
    for (size_t each = 0; each < pass->count; each++)
        if (update_is_held(&pass->holds[each], update)) return pass->holds[each].object;
    return "no lock";
}

static void unprotected_say(struct rule_pass *pass, const struct rule_update *one, const struct rule_update *other) {
    char who[96], by[96];
    if (!updates_collide(pass, one, other) || updates_are_done_twice(pass, one, other)) return;
    rule_broken(
        pass, RULE_UNPROTECTED_WRITE, one->write, other->write,
        "%s wrote %.100s, which it had read before, under %.80s, and %s wrote it under %.80s: they have no lock in "
        "common",
        request_write_name(pass, one->request, who), pass->record->events[one->write].wire.object,
        update_lock(pass, one), request_write_name(pass, other->request, by), update_lock(pass, other));
}

void look_unprotected_write(struct rule_pass *pass) {
    struct rule_update_list list = rule_updates_find(pass);
    for (size_t one = 0; one < list.count; one++)
        for (size_t other = 0; other < list.count; other++) unprotected_say(pass, &list.of[one], &list.of[other]);
    free(list.of);
}
