#include "harness/library_search/message_sorts.h"

bool message_sort_of(const struct library_world *world, struct library_choice step, struct message_aim *message) {
    if (step.kind != LIBRARY_REQUEST && step.kind != LIBRARY_ANSWER) return false;
    const struct library_link *link = library_link_look(world->clients, step.who);
    if (!link) return false;
    bool is_answer = step.kind == LIBRARY_ANSWER;
    *message = (struct message_aim){is_answer ? link->asked_sort : link->requests.messages[0].sort, is_answer, 0};
    return true;
}

void message_sorts_note(struct message_sorts *sorts, const struct message_aim *message) {
    int each = 0;
    while (each < sorts->count &&
           (sorts->of[each].sort != message->sort || sorts->of[each].is_answer != message->is_answer))
        each++;
    if (each == MESSAGE_SORTS) return;
    if (each == sorts->count) sorts->of[sorts->count++] = (struct message_sort){message->sort, message->is_answer, 0};
    sorts->of[each].seen++;
}

/* A client can be struck before any message; a connection before one that goes the fault's way. */
static bool can_strike(enum library_choice_kind fault, const struct message_sort *sort) {
    return library_strikes_client(fault) || sort->is_answer == (fault == LIBRARY_HOLD_REPLY);
}

bool message_sorts_draw(const struct message_sorts *sorts, enum library_choice_kind fault, struct random *random,
                        struct message_aim *aim) {
    int fitting[MESSAGE_SORTS], count = 0;
    if (library_strikes_server(fault)) return false;
    for (int each = 0; each < sorts->count; each++)
        if (can_strike(fault, &sorts->of[each])) fitting[count++] = each;
    if (count == 0) return false;
    const struct message_sort *sort = &sorts->of[fitting[random_below(random, (uint64_t)count)]];
    uint64_t usual = sorts->schedules > 0 ? sort->seen / sorts->schedules : 0;
    *aim = (struct message_aim){sort->sort, sort->is_answer, usual > 1 ? random_below(random, usual) : 0};
    return true;
}
