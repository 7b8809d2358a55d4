/* A function that can be left in the middle and gone on with later: lock code that waits, without a thread. */
#ifndef LOCKSTORM_EXPLORER_COROUTINE_H
#define LOCKSTORM_EXPLORER_COROUTINE_H

#include <stdbool.h>
#include <ucontext.h>

struct coroutine {
    ucontext_t inside, outside;
    void (*run)(void *argument);
    void *argument;
    void *stack; /* kept for the next run */
    bool active; /* begun and not at its end */
};

/* Prepares a run; nothing of it happens before coroutine_resume. Not while it is active. */
void coroutine_begin(struct coroutine *coroutine, void (*run)(void *argument), void *argument);

/* Goes on with it until it leaves or ends. */
void coroutine_resume(struct coroutine *coroutine);

/* From inside: back to whoever resumed it. */
void coroutine_leave(struct coroutine *coroutine);

/* Gives its stack back. Not while it is active: what it had allocated would be lost. */
void coroutine_free(struct coroutine *coroutine);

#endif
