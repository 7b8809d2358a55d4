#include "harness/simulation/coroutine.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 4 << 10 };

/* The lowest page is a guard: an overflow ends the process instead of damaging other memory. */
static void *stack_map(void) {
    void *map = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (map == MAP_FAILED || mprotect(map, GUARD_BYTES, PROT_NONE) != 0) abort();
    return map;
}

/* makecontext passes ints only. */
static void enter(unsigned high, unsigned low) {
    struct coroutine *coroutine = (struct coroutine *)(((uintptr_t)high << 32) | low);
    coroutine->run(coroutine->argument);
    coroutine->active = false;
}

void coroutine_begin(struct coroutine *coroutine, void (*run)(void *argument), void *argument) {
    assert(!coroutine->active);
    if (!coroutine->stack) coroutine->stack = stack_map();
    coroutine->run = run;
    coroutine->argument = argument;
    coroutine->active = true;
    getcontext(&coroutine->inside);
    coroutine->inside.uc_stack.ss_sp = coroutine->stack;
    coroutine->inside.uc_stack.ss_size = STACK_BYTES;
    coroutine->inside.uc_link = &coroutine->outside;
    uintptr_t self = (uintptr_t)coroutine;
    makecontext(&coroutine->inside, (void (*)(void))enter, 2, (unsigned)(self >> 32), (unsigned)self);
}

void coroutine_resume(struct coroutine *coroutine) {
    assert(coroutine->active);
    swapcontext(&coroutine->outside, &coroutine->inside);
}

void coroutine_leave(struct coroutine *coroutine) {
    swapcontext(&coroutine->inside, &coroutine->outside);
}

void coroutine_free(struct coroutine *coroutine) {
    assert(!coroutine->active);
    if (coroutine->stack) munmap(coroutine->stack, STACK_BYTES);
    coroutine->stack = NULL;
}
