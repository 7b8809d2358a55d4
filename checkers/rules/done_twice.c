/* Two requests read the same row, and then both do what it says: each makes a new row of one table, and writes the row
 * to the same end. It is an unprotected write that loses no value, as both write the same; what is done twice is the
 * work. */
#include <stdlib.h>
#include <string.h>

#include "checkers/rules/rule_list.h"
#include "checkers/rules/rule_updates.h"

/* "postgres mails" of "postgres mails id=7". */
static size_t table_length(const char *object) {
    const char *name = strchr(object, ' ');
    return name ? (size_t)(name - object) + 1 + strcspn(name + 1, " ") : strlen(object);
}

static bool same_table(const struct wire_event *one, const struct wire_event *other) {
    size_t length = table_length(one->object);
    return one->service == other->service && length == table_length(other->object) &&
           strncmp(one->object, other->object, length) == 0;
}

/* Whether the event makes a new row, for a request that has read what its update rests on. */
static bool is_work(const struct rule_pass *pass, size_t at, const struct rule_update *update) {
    const struct rule_event *event = &pass->record->events[at];
    return event->request == update->request && at > update->from && event->wire.kind == ACCESS_WRITE &&
           event->wire.inserts && is_data(&event->wire);
}

/* The new row of the first of two updates that both make one of the same table; NULL: they do not. */
static const struct wire_event *work_of_both(const struct rule_pass *pass, const struct rule_update *one,
                                             const struct rule_update *other) {
    for (size_t first = one->from; first < pass->record->count; first++) {
        if (!is_work(pass, first, one)) continue;
        for (size_t second = other->from; second < pass->record->count; second++)
            if (is_work(pass, second, other) &&
                same_table(&pass->record->events[first].wire, &pass->record->events[second].wire))
                return &pass->record->events[first].wire;
    }
    return NULL;
}

bool updates_are_done_twice(const struct rule_pass *pass, const struct rule_update *one,
                            const struct rule_update *other) {
    const char *text = pass->record->events[one->write].wire.text;
    return other->rests_on_read && text[0] && strcmp(text, pass->record->events[other->write].wire.text) == 0 &&
           work_of_both(pass, one, other);
}

static void done_twice_say(struct rule_pass *pass, const struct rule_update *one, const struct rule_update *other) {
    char who[96], by[96];
    if (!updates_collide(pass, one, other) || !updates_are_done_twice(pass, one, other)) return;
    const char *made = work_of_both(pass, one, other)->object;
    rule_broken(
        pass, RULE_DONE_TWICE, one->write, other->write,
        "%s and %s both read %.100s, made a new row of %.*s, and wrote the same (%.100s): nothing keeps one from "
        "doing what the other does",
        request_write_name(pass, one->request, who), request_write_name(pass, other->request, by),
        pass->record->events[one->write].wire.object, (int)(table_length(made) > 80 ? 80 : table_length(made)), made,
        pass->record->events[one->write].wire.text);
}

void look_done_twice(struct rule_pass *pass) {
    struct rule_update_list list = rule_updates_find(pass);
    for (size_t one = 0; one < list.count; one++)
        for (size_t other = one + 1; other < list.count; other++) done_twice_say(pass, &list.of[one], &list.of[other]);
    free(list.of);
}
