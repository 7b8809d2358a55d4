/* Two requests that write the same data and hold no common lock. One of them writes what it has computed from what it
 * read: the other's effect is lost when it falls in between. As the locksets of Eraser, with two differences: a request
 * is a thread, and data that only one request has written, or that others only read, accuse nobody. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/rules/rule_list.h"

/* A write, from the read that it rests on. */
struct rule_update {
    int request;
    size_t from, write;
    bool rests_on_read;
};

struct update_list {
    struct rule_update *of; /* owned */
    size_t count;
};

/* PostgreSQL refuses a write of what has changed since the snapshot. */
static bool is_refused_when_stale(const struct rule_record *record, size_t read, size_t write) {
    const struct wire_event *one = &record->events[read].wire, *other = &record->events[write].wire;
    return other->in_transaction && one->session == other->session && one->transaction == other->transaction &&
           other->isolation >= ISOLATION_REPEATABLE_READ;
}

static struct update_list updates_find(const struct rule_pass *pass) {
    const struct rule_record *record = pass->record;
    struct update_list list = {calloc(record->count + 1, sizeof *list.of), 0};
    if (!list.of) abort();
    for (size_t at = 0; at < record->count; at++) {
        const struct rule_event *write = &record->events[at];
        if (write->wire.kind != ACCESS_WRITE || !is_data(&write->wire) || write->request < 0 ||
            write->wire.whole_table || write->wire.inserts)
            continue;
        size_t read = read_before(pass, at);
        bool rests = read != SIZE_MAX && !is_guarded(&write->wire) && !is_refused_when_stale(record, read, at);
        list.of[list.count++] = (struct rule_update){write->request, rests ? read : at, at, rests};
    }
    return list;
}

static bool holds_at_both(const struct rule_hold *hold, const struct rule_update *update) {
    return hold->request == update->request && hold_lasts(hold, update->from) && hold_lasts(hold, update->write);
}

static bool have_common_lock(const struct rule_pass *pass, const struct rule_update *one,
                             const struct rule_update *other) {
    for (size_t each = 0; each < pass->count; each++) {
        if (!holds_at_both(&pass->holds[each], one)) continue;
        /* A lock of the row itself keeps every other writer out. */
        if (ends_with_transaction(pass->holds[each].lock) &&
            strcmp(pass->holds[each].object, pass->record->events[one->write].wire.object) == 0)
            return true;
        for (size_t second = 0; second < pass->count; second++)
            if (holds_at_both(&pass->holds[second], other) &&
                strcmp(pass->holds[each].object, pass->holds[second].object) == 0)
                return true;
    }
    return false;
}

static const char *update_lock(const struct rule_pass *pass, const struct rule_update *update) {
    for (size_t each = 0; each < pass->count; each++)
        if (holds_at_both(&pass->holds[each], update)) return pass->holds[each].object;
    return "no lock";
}

static void updates_collide(struct rule_pass *pass, const struct rule_update *one, const struct rule_update *other) {
    const struct rule_record *record = pass->record;
    char who[96], by[96];
    if (!one->rests_on_read || one->request == other->request ||
        !same_object(&record->events[one->write].wire, &record->events[other->write].wire) ||
        have_common_lock(pass, one, other))
        return;
    rule_broken(
        pass, RULE_UNPROTECTED_WRITE, one->write, other->write,
        "%s wrote %.100s, which it had read before, under %.80s, and %s wrote it under %.80s: they have no lock in "
        "common",
        request_write_name(pass, one->request, who), record->events[one->write].wire.object, update_lock(pass, one),
        request_write_name(pass, other->request, by), update_lock(pass, other));
}

void look_unprotected_write(struct rule_pass *pass) {
    struct update_list list = updates_find(pass);
    for (size_t one = 0; one < list.count; one++)
        for (size_t other = 0; other < list.count; other++) updates_collide(pass, &list.of[one], &list.of[other]);
    free(list.of);
}
