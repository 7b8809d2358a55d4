/* Mutexes with priority inheritance. The kernel is never asked to wait for one, so that it knows no waiters; priorities
 * are not inherited, because one thread runs at a time, but the oldest waiter gets the mutex. */
#include <errno.h>
#include <linux/futex.h>

#include "harness/supervisor/calls_futex.h"

static bool write_word(const struct program_process *process, uint64_t word, uint32_t value) {
    return program_write(process, word, &value, sizeof value);
}

/* The deadline of LOCK_PI is always one of the wall clock. */
static void wait_for_owner(struct supervisor *supervisor, struct program_process *process,
                           const struct seccomp_notif *call) {
    int64_t deadline_ns;
    int operation = (int)call_argument(call, 1);
    if (!call_read_limit(supervisor, process, call, 3, &deadline_ns)) return;
    struct held_call *held = held_call_add(supervisor, process, call, HELD_MUTEX);
    held->deadline_ns = deadline_ns;
    held->by_wall_clock =
        deadline_ns != INT64_MAX && ((operation & FUTEX_CMD_MASK) == FUTEX_LOCK_PI || operation & FUTEX_CLOCK_REALTIME);
    held->word = call_argument(call, 0);
}

void futex_lock_inheriting(struct supervisor *supervisor, struct program_process *process,
                           const struct seccomp_notif *call) {
    uint64_t word = call_argument(call, 0);
    uint32_t value;
    bool tries = ((int)call_argument(call, 1) & FUTEX_CMD_MASK) == FUTEX_TRYLOCK_PI;
    if (!call_read(supervisor, process, call, word, &value, sizeof value)) return;
    if ((value & FUTEX_TID_MASK) == call->pid) {
        supervisor_refuse(supervisor, call, EDEADLK);
    } else if (!(value & FUTEX_TID_MASK)) {
        value |= call->pid;
        call_answer_written(supervisor, process, call, word, &value, sizeof value, 0);
    } else if (tries) {
        supervisor_refuse(supervisor, call, EAGAIN);
    } else if (!write_word(process, word, value | FUTEX_WAITERS)) {
        supervisor_refuse(supervisor, call, EFAULT);
    } else {
        wait_for_owner(supervisor, process, call);
    }
}

static struct held_call *oldest_waiter(const struct supervisor *supervisor, const struct program_process *process,
                                       uint64_t word) {
    for (struct held_call *each = supervisor->held; each; each = each->next)
        if (each->kind == HELD_MUTEX && each->end == END_NOT_YET && each->process == process && each->word == word)
            return each;
    return NULL;
}

void futex_unlock_inheriting(struct supervisor *supervisor, struct program_process *process,
                             const struct seccomp_notif *call) {
    uint64_t word = call_argument(call, 0);
    uint32_t value;
    struct held_call *next = oldest_waiter(supervisor, process, word);
    if (!call_read(supervisor, process, call, word, &value, sizeof value)) return;
    if ((value & FUTEX_TID_MASK) != call->pid) {
        supervisor_refuse(supervisor, call, EPERM);
    } else if (!write_word(process, word, next ? next->call.pid | FUTEX_WAITERS : 0)) {
        supervisor_refuse(supervisor, call, EFAULT);
    } else {
        if (next) held_call_ready(supervisor, next, END_ANSWER, 0);
        supervisor_answer(supervisor, call, 0);
    }
}

bool futex_inherit(struct supervisor *supervisor, struct held_call *held) {
    uint32_t value;
    if (held->kind != HELD_MUTEX || held->end != END_NOT_YET) return false;
    if (!program_read(held->process, held->word, &value, sizeof value) || value & FUTEX_TID_MASK) return false;
    if (!write_word(held->process, held->word, value | held->call.pid)) return false;
    held_call_ready(supervisor, held, END_ANSWER, 0);
    return true;
}
