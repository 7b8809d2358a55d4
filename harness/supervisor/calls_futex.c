/* Futexes. Waits and wakes are carried out here and never by the kernel: calls come one at a time, so nothing happens
 * between the look at the word and the wait. What the kernel itself wakes, at the end of a thread, is found by looking
 * at the words again (futex_recheck). */
#include "harness/supervisor/calls.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
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

/* Whether it waits at this word of the calling process; another process's is the same one in shared memory only. */
static bool waits_at(const struct held_call *held, const struct program_call *call, uint64_t word) {
    uint64_t one[3], other[3];
    if (held->kind != HELD_FUTEX || held->end != END_NOT_YET) return false;
    if (held->call.process == call->process) return held->word == word;
    if ((call->arguments[1] | held->call.arguments[1]) & FUTEX_PRIVATE_FLAG) return false;
    return shared_place(call->process, word, one) && shared_place(held->call.process, held->word, other) &&
           memcmp(one, other, sizeof one) == 0;
}

static int wake(const struct program_call *call, uint64_t word, int most, uint32_t bits) {
    int woken = 0;
    for (struct held_call *each = call->supervisor->held; each && woken < most; each = each->next) {
        if (!waits_at(each, call, word) || !(each->bits & bits)) continue;
        held_call_ready(each, END_ANSWER, 0);
        woken++;
    }
    return woken;
}

static void wait_for_wake(const struct program_call *call, uint32_t bits) {
    int operation = (int)call->arguments[1], command = operation & FUTEX_CMD_MASK;
    int64_t deadline_ns = INT64_MAX;
    uint64_t word = call->arguments[0], timeout = call->arguments[3];
    uint32_t value;
    if (!call_read(call, word, &value, sizeof value)) return;
    if (value != (uint32_t)call->arguments[2]) {
        supervisor_refuse(call, EAGAIN);
        return;
    }
    if (timeout && !call_read_time(call, timeout, &deadline_ns)) return;
    if (timeout && command == FUTEX_WAIT) deadline_ns = call_deadline_ns(call, deadline_ns);
    struct held_call *held = held_call_add(call, HELD_FUTEX);
    held->deadline_ns = deadline_ns;
    held->by_wall_clock = timeout && command == FUTEX_WAIT_BITSET && operation & FUTEX_CLOCK_REALTIME;
    held->word = word;
    held->expected = value;
    held->bits = bits;
    held_call_look_if_over(held);
}

/* Wakes some, and moves others from one word to another. */
static void requeue(const struct program_call *call, bool compares) {
    uint64_t from = call->arguments[0], to = call->arguments[4];
    int most_moved = (int)call->arguments[3], moved = 0;
    uint32_t value;
    if (!call_read(call, from, &value, sizeof value)) return;
    if (compares && value != (uint32_t)call->arguments[5]) {
        supervisor_refuse(call, EAGAIN);
        return;
    }
    int woken = wake(call, from, (int)call->arguments[2], FUTEX_BITSET_MATCH_ANY);
    for (struct held_call *each = call->supervisor->held; each && moved < most_moved; each = each->next) {
        if (!waits_at(each, call, from)) continue;
        each->word = to;
        if (!program_read(call->process, to, &each->expected, sizeof each->expected)) each->expected = 0;
        moved++;
    }
    supervisor_answer(call, woken + moved);
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
static void wake_and_operate(const struct program_call *call) {
    uint64_t second = call->arguments[4];
    uint32_t operation = (uint32_t)call->arguments[5], old, new;
    if (!call_read(call, second, &old, sizeof old)) return;
    new = operated(operation, old);
    if (!call_write(call, second, &new, sizeof new)) return;
    int woken = wake(call, call->arguments[0], (int)call->arguments[2], FUTEX_BITSET_MATCH_ANY);
    if (compared(operation, (int32_t)old)) woken += wake(call, second, (int)call->arguments[3], FUTEX_BITSET_MATCH_ANY);
    supervisor_answer(call, woken);
}

void on_futex(const struct program_call *call) {
    int command = (int)call->arguments[1] & FUTEX_CMD_MASK;
    uint32_t bits = (uint32_t)call->arguments[5];
    switch (command) {
    case FUTEX_WAIT: wait_for_wake(call, FUTEX_BITSET_MATCH_ANY); break;
    case FUTEX_WAIT_BITSET:
        if (bits) wait_for_wake(call, bits);
        else supervisor_refuse(call, EINVAL);
        break;
    case FUTEX_WAKE: bits = FUTEX_BITSET_MATCH_ANY; /* fall through */
    case FUTEX_WAKE_BITSET: {
        int most = (int)call->arguments[2];
        supervisor_answer(call, wake(call, call->arguments[0], most > 0 ? most : 1, bits));
        break;
    }
    case FUTEX_REQUEUE: requeue(call, false); break;
    case FUTEX_CMP_REQUEUE: requeue(call, true); break;
    case FUTEX_WAKE_OP: wake_and_operate(call); break;
    case FUTEX_UNLOCK_PI: futex_unlock_inheriting(call); break;
    case FUTEX_TRYLOCK_PI: /* fall through */
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2: futex_lock_inheriting(call); break;
    case FUTEX_WAIT_REQUEUE_PI: /* fall through */
    case FUTEX_CMP_REQUEUE_PI:
        supervisor_give_up(call->supervisor, "the program requeues to a mutex with priority inheritance (futex %d)",
                           command);
        break;
    default: supervisor_refuse(call, ENOSYS); break;
    }
}

bool futex_recheck(struct supervisor *supervisor) {
    bool found = false;
    for (struct held_call *each = supervisor->held; each; each = each->next) {
        uint32_t value;
        found |= futex_inherit(each);
        if (each->kind != HELD_FUTEX || each->end != END_NOT_YET) continue;
        if (!program_read(each->call.process, each->word, &value, sizeof value) || value == each->expected) continue;
        held_call_ready(each, END_ANSWER, 0);
        found = true;
    }
    return found;
}
