/* A function that can be suspended and resumed: lock code that waits, without a thread.
 *
 * On x86-64 a switch saves and loads registers itself: swapcontext also sets the signal mask, which are two system
 * calls for every step. Elsewhere, and with a sanitizer that has to know of each switch, it is swapcontext. */
#pragma once

#include <stdbool.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COROUTINE_SWITCHES_STACKS
typedef void *coroutine_context; /* the stack pointer; what has to be restored lies on the stack */
#else
#include <ucontext.h>
typedef ucontext_t coroutine_context;
#endif

struct coroutine {
    coroutine_context inside, outside;
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
