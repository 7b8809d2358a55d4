#include "harness/simulation/coroutine.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 4 << 10 };

/* The lowest page is a guard: an overflow ends the process instead of damaging other memory. */
static void *stack_map(void) {
    void *map = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (map == MAP_FAILED || mprotect(map, GUARD_BYTES, PROT_NONE) != 0) abort();
    return map;
}

#ifdef COROUTINE_SWITCHES_STACKS

/* Pushes what a function must preserve by the System V ABI - six registers, and the modes of SSE and x87 - stores the
 * stack pointer in *from, and continues on the other stack. */
void coroutine_switch(coroutine_context *from, coroutine_context to) __attribute__((visibility("hidden")));
/* Where a new stack begins: calls the function in r13 with r12. */
void coroutine_first(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".hidden coroutine_switch\n"
        ".globl coroutine_switch\n"
        ".type coroutine_switch, @function\n"
        "coroutine_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size coroutine_switch, . - coroutine_switch\n"
        ".hidden coroutine_first\n"
        ".globl coroutine_first\n"
        ".type coroutine_first, @function\n"
        "coroutine_first:\n"
        "    movq %r12, %rdi\n"
        "    call *%r13\n"
        "    ud2\n"
        ".size coroutine_first, . - coroutine_first\n");

/* The stack that coroutine_switch finds, from its pointer up. The ABI wants a multiple of 16 before a call. */
struct first_frame {
    uint32_t sse_mode, x87_mode;
    uint64_t r15, r14, r13, r12, rbx, rbp, after_return;
    uint64_t end_of_frames[2]; /* 0: a debugger goes no further */
};
_Static_assert(sizeof(struct first_frame) % 16 == 0, "the stack pointer is aligned where coroutine_first calls");

static void enter(struct coroutine *coroutine) {
    coroutine->run(coroutine->argument);
    coroutine->active = false;
    coroutine_switch(&coroutine->inside, coroutine->outside);
    abort(); /* an ended coroutine is never resumed */
}

static void context_begin(struct coroutine *coroutine) {
    struct first_frame frame = {
        .r12 = (uintptr_t)coroutine, .r13 = (uintptr_t)enter, .after_return = (uintptr_t)coroutine_first};
    uint16_t x87_mode;
    __asm__ volatile("stmxcsr %0" : "=m"(frame.sse_mode));
    __asm__ volatile("fnstcw %0" : "=m"(x87_mode));
    frame.x87_mode = x87_mode;
    coroutine->inside = (char *)coroutine->stack + STACK_BYTES - sizeof frame;
    memcpy(coroutine->inside, &frame, sizeof frame);
}

static void context_switch(coroutine_context *from, const coroutine_context *to) {
    coroutine_switch(from, *to);
}

#else

/* makecontext passes ints only. */
static void enter(unsigned high, unsigned low) {
    struct coroutine *coroutine = (struct coroutine *)(((uintptr_t)high << 32) | low);
    coroutine->run(coroutine->argument);
    coroutine->active = false;
}

static void context_begin(struct coroutine *coroutine) {
    getcontext(&coroutine->inside);
    coroutine->inside.uc_stack.ss_sp = coroutine->stack;
    coroutine->inside.uc_stack.ss_size = STACK_BYTES;
    coroutine->inside.uc_link = &coroutine->outside;
    uintptr_t self = (uintptr_t)coroutine;
    makecontext(&coroutine->inside, (void (*)(void))enter, 2, (unsigned)(self >> 32), (unsigned)self);
}

static void context_switch(coroutine_context *from, const coroutine_context *to) {
    swapcontext(from, to);
}

#endif

void coroutine_begin(struct coroutine *coroutine, void (*run)(void *argument), void *argument) {
    assert(!coroutine->active);
    if (!coroutine->stack) coroutine->stack = stack_map();
    coroutine->run = run;
    coroutine->argument = argument;
    coroutine->active = true;
    context_begin(coroutine);
}

void coroutine_resume(struct coroutine *coroutine) {
    assert(coroutine->active);
    context_switch(&coroutine->outside, &coroutine->inside);
}

void coroutine_leave(struct coroutine *coroutine) {
    context_switch(&coroutine->inside, &coroutine->outside);
}

void coroutine_free(struct coroutine *coroutine) {
    assert(!coroutine->active);
    if (coroutine->stack) munmap(coroutine->stack, STACK_BYTES);
    coroutine->stack = NULL;
}
