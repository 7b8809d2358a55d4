/* The filter by which the kernel hands over the calls of CALLS and lets all others happen. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/supervisor/calls.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* Linux 5.19 */
#endif

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
#endif

enum { INSTRUCTIONS_MOST = 512 };

struct filter {
    struct sock_filter instructions[INSTRUCTIONS_MOST];
    unsigned short count;
};

static void filter_add(struct filter *filter, unsigned short code, uint32_t operand, unsigned char if_true,
                       unsigned char if_false) {
    if (filter->count < INSTRUCTIONS_MOST)
        filter->instructions[filter->count++] = (struct sock_filter){code, if_true, if_false, operand};
}

static void filter_load(struct filter *filter, size_t offset) {
    filter_add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void filter_decide(struct filter *filter, uint32_t action) {
    filter_add(filter, BPF_RET | BPF_K, action, 0, 0);
}

/* The lower half of an argument; x86-64 and arm64 are little-endian. */
static void add_call(struct filter *filter, const struct supervised_call *call) {
    filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->number, 0, call->limit ? 4 : 1);
    if (call->limit) {
        filter_load(filter, offsetof(struct seccomp_data, args) + (size_t)call->limit * sizeof(uint64_t));
        filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
        filter_decide(filter, SECCOMP_RET_ALLOW);
    }
    filter_decide(filter, SECCOMP_RET_USER_NOTIF);
}

/* Calls of another architecture (32 bits) would pass unseen: their process is killed. */
static void filter_fill(struct filter *filter) {
    filter_load(filter, offsetof(struct seccomp_data, arch));
    filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    filter_decide(filter, SECCOMP_RET_KILL_PROCESS);
    filter_load(filter, offsetof(struct seccomp_data, nr));
    for (const struct supervised_call *each = CALLS; each->number >= 0; each++)
        if (each->handle) add_call(filter, each);
    filter_decide(filter, SECCOMP_RET_ALLOW);
}

int call_filter_install(void) {
    static struct filter filter;
    filter_fill(&filter);
    if (filter.count == INSTRUCTIONS_MOST) {
        errno = E2BIG;
        return -1;
    }
    struct sock_fprog program = {filter.count, filter.instructions};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
}
