/* A function that can be suspended and resumed: lock code that waits, without a thread. */
#ifndef LOCKSTORM_SIMULATION_COROUTINE_H
#define LOCKSTORM_SIMULATION_COROUTINE_H

#include <stdbool.h>
#include <ucontext.h>

struct coroutine {
    ucontext_t inside, outside;
    void (*run)(void *argument);
    void *argument;
    void *stack; /* kept for the next run */
    bool active; /* begun, and not ended */
};

/* Prepares a run, which coroutine_resume starts. The coroutine must not be active. */
void coroutine_begin(struct coroutine *coroutine, void (*run)(void *argument), void *argument);

/* Runs it until it leaves or ends. */
void coroutine_resume(struct coroutine *coroutine);

/* Called inside the coroutine: suspends it and returns to the caller of coroutine_resume. */
void coroutine_leave(struct coroutine *coroutine);

/* Frees its stack. The coroutine must not be active: memory that its function had allocated would leak. */
void coroutine_free(struct coroutine *coroutine);

#endif
