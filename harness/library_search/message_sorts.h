/* What the messages of a session ask for, so that rare ones can be struck as often as common ones: a wait that
 * subscribes once sends one command among dozens that only try again. */
#ifndef LOCKSTORM_MESSAGE_SORTS_H
#define LOCKSTORM_MESSAGE_SORTS_H

#include "harness/library/library_world.h"
#include "harness/scheduler/random.h"

enum { MESSAGE_SORTS = 64 };

/* Messages that ask for the same (queued_message.sort), or the answers to them. */
struct message_sort {
    uint64_t sort;
    bool is_answer;
    uint64_t seen; /* messages */
};

struct message_sorts {
    struct message_sort of[MESSAGE_SORTS]; /* what else is sent is not struck by its sort */
    int count;
    uint64_t schedules; /* in which they were seen */
};

/* Which messages a fault is to strike: the first one of its sort after `skip` others. */
struct message_aim {
    uint64_t sort;
    bool is_answer;
    uint64_t skip;
};

/* The sort of a step's message; false: the step is not a request or an answer. */
bool message_sort_of(const struct library_world *world, struct library_choice step, struct message_aim *message);
void message_sorts_note(struct message_sorts *sorts, const struct message_aim *message);
/* Draws one that a fault of this kind can strike, each sort as likely as any other, and one of as many of its messages
 * as a schedule has. False: none was seen. */
bool message_sorts_draw(const struct message_sorts *sorts, enum library_choice_kind fault, struct random *random,
                        struct message_aim *aim);

#endif
