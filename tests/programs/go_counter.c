/* Reads the processor's counter as Go's runtime does, with the same instructions, on both of its ways; and carries the
 * note of Go's linker. Elsewhere than on x86-64 it prints zeros, which says nothing. */
#include <inttypes.h>
#include <stdio.h>

#ifdef __x86_64__

__asm__(".pushsection .note.go.buildid, \"a\", @note\n"
        "    .balign 4\n"
        "    .long 4, 4, 4\n"
        "    .asciz \"Go\"\n"
        "    .byte 0\n"
        "    .ascii \"none\"\n"
        ".popsection\n"
        ".pushsection .text\n"
        "by_rdtscp:\n"
        "    rdtscp\n"
        "1:  shl $32, %rdx\n"
        "    add %rdx, %rax\n"
        "    mov %rax, 8(%rsp)\n"
        "    ret\n"
        "by_rdtsc:\n"
        "    mfence\n"
        "    lfence\n"
        "    rdtsc\n"
        "    jmp 1b\n"
        ".popsection\n");

void by_rdtscp(void);
void by_rdtsc(void);

/* The result stands above the return address, as in Go's calls by the stack. */
static uint64_t result_of(void (*code)(void)) {
    uint64_t value;
    __asm__ volatile("sub $136, %%rsp\n"
                     "call *%1\n"
                     "mov (%%rsp), %0\n"
                     "add $136, %%rsp\n"
                     : "=r"(value)
                     : "r"(code)
                     : "rax", "rcx", "rdx", "memory", "cc");
    return value;
}

#else

static void by_rdtscp(void) {
}
static void by_rdtsc(void) {
}

static uint64_t result_of(void (*code)(void)) {
    code();
    return 0;
}

#endif

int main(void) {
    printf("rdtscp %" PRIu64 "\nrdtsc %" PRIu64 "\n", result_of(by_rdtscp), result_of(by_rdtsc));
    return 0;
}
