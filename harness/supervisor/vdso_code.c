#include "harness/supervisor/vdso_code.h"

#define BYTES(name) extern const unsigned char name[], name##_end[];

#if defined __x86_64__

/* clock_gettime(clock in edi, timespec in rsi). Bits of 0x821: CLOCK_REALTIME, its coarse form, TAI; of 0xd2:
 * MONOTONIC, RAW, its coarse form, BOOTTIME. 228, 96, 201: the numbers of the system calls. */
__asm__(".pushsection .rodata\n"
        "vdso_clock_gettime:\n"
        "    endbr64\n"
        "    cmpl $11, %edi\n"
        "    ja 3f\n"
        "    movl $0xd2, %eax\n"
        "    btl %edi, %eax\n"
        "    jc 2f\n"
        "    movl $0x821, %eax\n"
        "    btl %edi, %eax\n"
        "    jnc 3f\n"
        "    movq 4f(%rip), %rax\n"
        "    movq 4f+8(%rip), %rdx\n"
        "1:  movq %rax, (%rsi)\n"
        "    movq %rdx, 8(%rsi)\n"
        "    xorl %eax, %eax\n"
        "    ret\n"
        "2:  movq 4f+16(%rip), %rax\n"
        "    movq 4f+24(%rip), %rdx\n"
        "    jmp 1b\n"
        "3:  movl $228, %eax\n"
        "    syscall\n"
        "    ret\n"
        "    .balign 8\n"
        "4:  .fill 4, 8, 0\n"
        "vdso_clock_gettime_end:\n"
        "vdso_gettimeofday:\n"
        "    endbr64\n"
        "    movl $96, %eax\n"
        "    syscall\n"
        "    ret\n"
        "vdso_gettimeofday_end:\n"
        "vdso_time:\n"
        "    endbr64\n"
        "    movl $201, %eax\n"
        "    syscall\n"
        "    ret\n"
        "vdso_time_end:\n"
        "vdso_getrandom:\n"
        "    endbr64\n"
        "    movq $-38, %rax\n"
        "    ret\n"
        "vdso_getrandom_end:\n"
        ".popsection\n");

BYTES(vdso_clock_gettime)
BYTES(vdso_gettimeofday)
BYTES(vdso_time)
BYTES(vdso_getrandom)

const struct vdso_function VDSO_FUNCTIONS[] = {
    {"__vdso_clock_gettime", vdso_clock_gettime, vdso_clock_gettime_end},
    {"__vdso_gettimeofday", vdso_gettimeofday, vdso_gettimeofday_end},
    {"__vdso_time", vdso_time, vdso_time_end},
    {"__vdso_getrandom", vdso_getrandom, vdso_getrandom_end},
    {0},
};

#elif defined __aarch64__

/* clock_gettime(clock in w0, timespec in x1); 113, 169: the numbers of the system calls. */
__asm__(".pushsection .rodata\n"
        "    .balign 8\n"
        "vdso_clock_gettime:\n"
        "    hint #34\n"
        "    adr x5, 4f\n"
        "    cmp w0, #11\n"
        "    b.hi 3f\n"
        "    mov w2, #1\n"
        "    lsl w2, w2, w0\n"
        "    mov w3, #0xd2\n"
        "    tst w2, w3\n"
        "    b.ne 2f\n"
        "    mov w3, #0x821\n"
        "    tst w2, w3\n"
        "    b.eq 3f\n"
        "    ldp x2, x3, [x5]\n"
        "1:  stp x2, x3, [x1]\n"
        "    mov w0, #0\n"
        "    ret\n"
        "2:  ldp x2, x3, [x5, #16]\n"
        "    b 1b\n"
        "3:  mov x8, #113\n"
        "    svc #0\n"
        "    ret\n"
        "    .balign 8\n"
        "4:  .fill 4, 8, 0\n"
        "vdso_clock_gettime_end:\n"
        "vdso_gettimeofday:\n"
        "    hint #34\n"
        "    mov x8, #169\n"
        "    svc #0\n"
        "    ret\n"
        "vdso_gettimeofday_end:\n"
        "vdso_getrandom:\n"
        "    hint #34\n"
        "    mov x0, #-38\n"
        "    ret\n"
        "vdso_getrandom_end:\n"
        ".popsection\n");

BYTES(vdso_clock_gettime)
BYTES(vdso_gettimeofday)
BYTES(vdso_getrandom)

const struct vdso_function VDSO_FUNCTIONS[] = {
    {"__kernel_clock_gettime", vdso_clock_gettime, vdso_clock_gettime_end},
    {"__kernel_gettimeofday", vdso_gettimeofday, vdso_gettimeofday_end},
    {"__kernel_getrandom", vdso_getrandom, vdso_getrandom_end},
    {0},
};

#else

const struct vdso_function VDSO_FUNCTIONS[] = {{0}};

#endif
