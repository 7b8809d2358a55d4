/* Mutexes with priority inheritance. The kernel is never asked to wait for one, so that it knows no waiters; priorities
 * are not inherited, because one thread runs at a time, but the oldest waiter gets the mutex. */
#include <errno.h>
#include <linux/futex.h>

#include "harness/supervisor/calls.h"

/* The deadline of LOCK_PI is always one of the wall clock. */
static void wait_for_owner(const struct program_call *call) {
    int64_t deadline_ns;
    int operation = (int)call->arguments[1];
    if (!call_read_limit(call, 3, &deadline_ns)) return;
    struct held_call *held = held_call_add(call, HELD_MUTEX);
    held->deadline_ns = deadline_ns;
    held->by_wall_clock =
        deadline_ns != INT64_MAX && ((operation & FUTEX_CMD_MASK) == FUTEX_LOCK_PI || operation & FUTEX_CLOCK_REALTIME);
    held->word = call->arguments[0];
}

void futex_lock_inheriting(const struct program_call *call) {
    uint64_t word = call->arguments[0];
    uint32_t value;
    bool tries = ((int)call->arguments[1] & FUTEX_CMD_MASK) == FUTEX_TRYLOCK_PI;
    if (!call_read(call, word, &value, sizeof value)) return;
    uint32_t owner = value & FUTEX_TID_MASK;
    value |= owner ? FUTEX_WAITERS : (uint32_t)call->tid;
    if (owner == (uint32_t)call->tid) supervisor_refuse(call, EDEADLK);
    else if (!owner) call_answer_written(call, word, &value, sizeof value, 0);
    else if (tries) supervisor_refuse(call, EAGAIN);
    else if (call_write(call, word, &value, sizeof value)) wait_for_owner(call);
}

static struct held_call *oldest_waiter(const struct program_call *call, uint64_t word) {
    for (struct held_call *each = call->supervisor->held; each; each = each->next)
        if (each->kind == HELD_MUTEX && each->end == END_NOT_YET && each->call.process == call->process &&
            each->word == word)
            return each;
    return NULL;
}

void futex_unlock_inheriting(const struct program_call *call) {
    uint64_t word = call->arguments[0];
    uint32_t value;
    struct held_call *next = oldest_waiter(call, word);
    if (!call_read(call, word, &value, sizeof value)) return;
    if ((value & FUTEX_TID_MASK) != (uint32_t)call->tid) {
        supervisor_refuse(call, EPERM);
        return;
    }
    value = next ? (uint32_t)next->call.tid | FUTEX_WAITERS : 0;
    if (!call_write(call, word, &value, sizeof value)) return;
    if (next) held_call_ready(next, END_ANSWER, 0);
    supervisor_answer(call, 0);
}

bool futex_inherit(struct held_call *held) {
    uint32_t value;
    if (held->kind != HELD_MUTEX || held->end != END_NOT_YET) return false;
    if (!program_read(held->call.process, held->word, &value, sizeof value) || value & FUTEX_TID_MASK) return false;
    value |= (uint32_t)held->call.tid;
    if (!program_write(held->call.process, held->word, &value, sizeof value)) return false;
    held_call_ready(held, END_ANSWER, 0);
    return true;
}
