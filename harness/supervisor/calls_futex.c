/* Futexes. Waits and wakes are carried out here and never by the kernel: calls come one at a time, so nothing happens
 * between the look at the word and the wait. What the kernel itself wakes, at the end of a thread, is found by looking
 * at the words again (futex_recheck). */
#include "harness/supervisor/calls_futex.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* Where a word is in memory that processes share. False: it is the process's own. */
static bool shared_place(const struct program_process *process, uint64_t word, uint64_t place[3]) {
    char path[64], line[512];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", process->pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uint64_t start, end, offset, inode;
        unsigned major, minor;
        char rights[5];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &start, &end, rights, &offset,
                   &major, &minor, &inode) != 7)
            continue;
        if (word < start || word >= end || rights[3] != 's') continue;
        place[0] = (uint64_t)major << 32 | minor;
        place[1] = inode;
        place[2] = offset + word - start;
        found = true;
    }
    if (maps) fclose(maps);
    return found;
}

/* `operation`: of the call that looks for waiters. A word of another process is the same one in shared memory only. */
static bool waits_at(const struct held_call *held, const struct program_process *process, uint64_t word,
                     uint64_t operation) {
    uint64_t one[3], other[3];
    if (held->kind != HELD_FUTEX || held->end != END_NOT_YET) return false;
    if (held->process == process) return held->word == word;
    if ((operation | call_argument(&held->call, 1)) & FUTEX_PRIVATE_FLAG) return false;
    return shared_place(process, word, one) && shared_place(held->process, held->word, other) &&
           memcmp(one, other, sizeof one) == 0;
}

static int wake(struct supervisor *supervisor, const struct program_process *process, const struct seccomp_notif *call,
                uint64_t word, int most, uint32_t bits) {
    int woken = 0;
    for (struct held_call *each = supervisor->held; each && woken < most; each = each->next) {
        if (!waits_at(each, process, word, call_argument(call, 1)) || !(each->bits & bits)) continue;
        held_call_ready(supervisor, each, END_ANSWER, 0);
        woken++;
    }
    return woken;
}

static void wait_for_wake(struct supervisor *supervisor, struct program_process *process,
                          const struct seccomp_notif *call, uint32_t bits) {
    int operation = (int)call_argument(call, 1), command = operation & FUTEX_CMD_MASK;
    int64_t deadline_ns = INT64_MAX;
    uint64_t word = call_argument(call, 0), timeout = call_argument(call, 3);
    uint32_t value;
    if (!call_read(supervisor, process, call, word, &value, sizeof value)) return;
    if (value != (uint32_t)call_argument(call, 2)) {
        supervisor_refuse(supervisor, call, EAGAIN);
        return;
    }
    if (timeout && !call_read_time(supervisor, process, call, timeout, &deadline_ns)) return;
    if (timeout && command == FUTEX_WAIT) deadline_ns = call_deadline_ns(supervisor, deadline_ns);
    struct held_call *held = held_call_add(supervisor, process, call, HELD_FUTEX);
    held->deadline_ns = deadline_ns;
    held->by_wall_clock = timeout && command == FUTEX_WAIT_BITSET && operation & FUTEX_CLOCK_REALTIME;
    held->word = word;
    held->expected = value;
    held->bits = bits;
}

/* Wakes some, and moves others from one word to another. */
static void requeue(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call,
                    bool compares) {
    uint64_t from = call_argument(call, 0), to = call_argument(call, 4);
    int most_moved = (int)call_argument(call, 3), moved = 0;
    uint32_t value;
    if (!call_read(supervisor, process, call, from, &value, sizeof value)) return;
    if (compares && value != (uint32_t)call_argument(call, 5)) {
        supervisor_refuse(supervisor, call, EAGAIN);
        return;
    }
    int woken = wake(supervisor, process, call, from, (int)call_argument(call, 2), FUTEX_BITSET_MATCH_ANY);
    for (struct held_call *each = supervisor->held; each && moved < most_moved; each = each->next) {
        if (!waits_at(each, process, from, call_argument(call, 1))) continue;
        each->word = to;
        if (!program_read(process, to, &each->expected, sizeof each->expected)) each->expected = 0;
        moved++;
    }
    supervisor_answer(supervisor, call, woken + moved);
}

static uint32_t operated(uint32_t operation, uint32_t old) {
    uint32_t operand = operation >> 12 & 0xfff;
    operand = operand & 0x800 ? operand | 0xfffff000 : operand; /* 12 bits with a sign */
    if (operation >> 28 & FUTEX_OP_OPARG_SHIFT) operand = 1u << (operand & 31);
    switch (operation >> 28 & 7) {
    case FUTEX_OP_SET: return operand;
    case FUTEX_OP_ADD: return old + operand;
    case FUTEX_OP_OR: return old | operand;
    case FUTEX_OP_ANDN: return old & ~operand;
    default: return old ^ operand;
    }
}

static bool compared(uint32_t operation, int32_t old) {
    int32_t with = (int32_t)(operation << 20) >> 20;
    switch (operation >> 24 & 15) {
    case FUTEX_OP_CMP_EQ: return old == with;
    case FUTEX_OP_CMP_NE: return old != with;
    case FUTEX_OP_CMP_LT: return old < with;
    case FUTEX_OP_CMP_LE: return old <= with;
    case FUTEX_OP_CMP_GT: return old > with;
    default: return old >= with;
    }
}

/* Changes a second word, wakes at the first, and at the second if its old value passes a comparison. No other thread
 * of the program runs, so that the change need not be atomic. */
static void wake_and_operate(struct supervisor *supervisor, struct program_process *process,
                             const struct seccomp_notif *call) {
    uint64_t second = call_argument(call, 4);
    uint32_t operation = (uint32_t)call_argument(call, 5), old, new;
    if (!call_read(supervisor, process, call, second, &old, sizeof old)) return;
    new = operated(operation, old);
    if (!program_write(process, second, &new, sizeof new)) {
        supervisor_refuse(supervisor, call, EFAULT);
        return;
    }
    int woken =
        wake(supervisor, process, call, call_argument(call, 0), (int)call_argument(call, 2), FUTEX_BITSET_MATCH_ANY);
    if (compared(operation, (int32_t)old))
        woken += wake(supervisor, process, call, second, (int)call_argument(call, 3), FUTEX_BITSET_MATCH_ANY);
    supervisor_answer(supervisor, call, woken);
}

static void on_futex(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    int command = (int)call_argument(call, 1) & FUTEX_CMD_MASK;
    uint32_t bits = (uint32_t)call_argument(call, 5);
    switch (command) {
    case FUTEX_WAIT: wait_for_wake(supervisor, process, call, FUTEX_BITSET_MATCH_ANY); break;
    case FUTEX_WAIT_BITSET:
        if (bits) wait_for_wake(supervisor, process, call, bits);
        else supervisor_refuse(supervisor, call, EINVAL);
        break;
    case FUTEX_WAKE: bits = FUTEX_BITSET_MATCH_ANY; /* fall through */
    case FUTEX_WAKE_BITSET: {
        int most = (int)call_argument(call, 2);
        supervisor_answer(supervisor, call,
                          wake(supervisor, process, call, call_argument(call, 0), most > 0 ? most : 1, bits));
        break;
    }
    case FUTEX_REQUEUE: requeue(supervisor, process, call, false); break;
    case FUTEX_CMP_REQUEUE: requeue(supervisor, process, call, true); break;
    case FUTEX_WAKE_OP: wake_and_operate(supervisor, process, call); break;
    case FUTEX_UNLOCK_PI: futex_unlock_inheriting(supervisor, process, call); break;
    case FUTEX_TRYLOCK_PI: /* fall through */
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2: futex_lock_inheriting(supervisor, process, call); break;
    case FUTEX_WAIT_REQUEUE_PI: /* fall through */
    case FUTEX_CMP_REQUEUE_PI:
        supervisor_give_up(supervisor, "the program requeues to a mutex with priority inheritance (futex %d)", command);
        break;
    default: supervisor_refuse(supervisor, call, ENOSYS); break;
    }
}

bool futex_recheck(struct supervisor *supervisor) {
    bool found = false;
    for (struct held_call *each = supervisor->held; each; each = each->next) {
        uint32_t value;
        found |= futex_inherit(supervisor, each);
        if (each->kind != HELD_FUTEX || each->end != END_NOT_YET) continue;
        if (!program_read(each->process, each->word, &value, sizeof value) || value == each->expected) continue;
        held_call_ready(supervisor, each, END_ANSWER, 0);
        found = true;
    }
    return found;
}

const struct supervised_call CALLS_FUTEX[] = {
    {SYS_futex, on_futex, CALL_ALWAYS, 0},
    {SYS_futex_waitv, call_refuse_unknown, CALL_ALWAYS, 0},
    {454, call_refuse_unknown, CALL_ALWAYS, 0}, /* futex_wake, futex_wait, futex_requeue: Linux 6.7 */
    {455, call_refuse_unknown, CALL_ALWAYS, 0},
    {456, call_refuse_unknown, CALL_ALWAYS, 0},
    {0},
};
