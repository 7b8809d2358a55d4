#include "harness/scheduler/task.h"

#include <assert.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/wakeup.h"

enum { NO_LIMIT = -1 };

static bool is_virtual(const struct task *task) {
    return shared_page_is_virtual(task->page);
}

static void task_give_back(struct task *task, enum task_state state) {
    atomic_store_explicit(&task->place->state, (uint32_t)state, memory_order_release);
    wakeup_send(task->yield_fd);
}

/* Waits for a wake-up on turn_fd. Without the driver no turn would ever come, so this ends the process then; normally
 * PR_SET_PDEATHSIG has ended it before. */
static void await_wakeup(struct task *task) {
    uint64_t count;
    ssize_t got;
    while ((got = read(task->turn_fd, &count, sizeof count)) < 0 && errno == EINTR) continue;
    if (got != sizeof count) abort();
}

static bool has_turn(const struct task *task) {
    return atomic_load_explicit(&task->place->state, memory_order_acquire) == TASK_RUNNING;
}

/* The state says whether it is this task's turn, the wake-up does not: in real time it may be a task_wake that came too
 * late. */
static void await_turn(struct task *task) {
    do {
        if (task->carrier) task->carrier->await_driver(task->carrier, task->place);
        else await_wakeup(task);
    } while (!has_turn(task));
}

static void stand(struct task *task) {
    atomic_store(&task->place->standing, 1);
}

/* In real time there are no turns, and a task that is stalled waits here. It clears `standing` before it reads
 * `stopped`: when the scheduler sets `stopped` and then sees `standing`, the task will not go on. */
static void move_on(struct task *task) {
    struct task_slot *slot = task->place;
    for (;;) {
        atomic_store(&slot->standing, 0);
        uint32_t stopped = atomic_load(&slot->stopped);
        if (is_virtual(task) || !(stopped & TASK_STOP_STALL)) break;
        atomic_store(&slot->standing, 1);
        if (task->carrier) task->carrier->await_driver(task->carrier, slot);
        else syscall(SYS_futex, &slot->stopped, FUTEX_WAIT, stopped, NULL, NULL, 0);
    }
    atomic_fetch_add(&slot->moves, 1);
}

void task_park(struct task *task, enum task_state state) {
    stand(task);
    task_give_back(task, state);
    await_turn(task);
    move_on(task);
}

void task_enter(struct task *task) {
    if (is_virtual(task)) task_park(task, TASK_READY);
}

/* Until the stamp, or until a wake-up. */
static void sleep_real(struct task *task, int64_t deadline_ns) {
    int64_t left_ns;
    while ((left_ns = deadline_ns - clock_real_mono_ns()) > 0) {
        struct timespec left = clock_timespec(left_ns);
        if (ppoll(&(struct pollfd){.fd = task->turn_fd, .events = POLLIN}, 1, &left, NULL) <= 0) continue;
        await_wakeup(task);
        return;
    }
}

void task_sleep_until(struct task *task, int64_t deadline_ns) {
    if (!is_virtual(task)) {
        stand(task);
        if (task->carrier) task->carrier->sleep_until(task->carrier, task->place, deadline_ns);
        else sleep_real(task, deadline_ns);
        move_on(task);
        return;
    }
    atomic_store_explicit(&task->place->deadline_ns, deadline_ns, memory_order_relaxed);
    task_park(task, TASK_SLEEPING);
}

/* In virtual time the caller has the turn, so nothing else changes the sleeper's state. */
void task_wake(struct task *sleeper) {
    if (sleeper->carrier) {
        sleeper->carrier->wake(sleeper->carrier, sleeper->place);
    } else if (!is_virtual(sleeper)) {
        wakeup_send(sleeper->turn_fd);
    } else if (atomic_load_explicit(&sleeper->place->state, memory_order_acquire) == TASK_SLEEPING) {
        atomic_store_explicit(&sleeper->place->state, TASK_READY, memory_order_release);
    }
}

void task_announce(struct task *second) {
    uint32_t state = is_virtual(second) ? TASK_READY : TASK_RUNNING;
    atomic_store_explicit(&second->place->state, state, memory_order_release);
}

void task_begin(struct task *second) {
    if (is_virtual(second)) await_turn(second);
}

void task_end(struct task *second, struct task *first) {
    bool awaited = atomic_load_explicit(&first->place->deadline_ns, memory_order_relaxed) == INT64_MAX;
    if (is_virtual(second) && awaited) task_wake(first);
    task_give_back(second, TASK_GONE);
}

bool task_has_ended(const struct task *second) {
    return atomic_load_explicit(&second->place->state, memory_order_acquire) == TASK_GONE;
}

/* In real time this does not wait: the caller joins the thread afterwards. */
void task_await_end(struct task *first, struct task *second) {
    task_wake(second);
    while (is_virtual(first) && !task_has_ended(second)) task_sleep_until(first, INT64_MAX);
}

/* Whether `fd` is readable within timeout_ms of real time; below 0: without limit. A signal may end a limited wait. */
static bool readable(int fd, int timeout_ms) {
    struct pollfd socket = {.fd = fd, .events = POLLIN};
    int ready;
    while ((ready = poll(&socket, 1, timeout_ms)) < 0 && errno == EINTR && timeout_ms < 0) continue;
    return ready > 0;
}

/* Other tasks have the turn meanwhile. Only the scheduler wakes this one, never the socket, or the machine would decide
 * the order: it asks the task to look (PROBING), or gives it the turn because news are there or the deadline has
 * passed (RUNNING). */
void task_await(struct task *task, bool (*has_news)(void *holder), void *holder, int64_t deadline_ns) {
    assert(is_virtual(task) && has_turn(task));
    atomic_store_explicit(&task->place->deadline_ns, deadline_ns, memory_order_relaxed);
    task_give_back(task, TASK_WAITING);
    for (;;) {
        await_wakeup(task);
        if (atomic_load_explicit(&task->place->state, memory_order_acquire) != TASK_PROBING) return;
        task_give_back(task, has_news(holder) ? TASK_READY : TASK_WAITING);
    }
}

static bool is_readable(void *holder) {
    return readable(*(const int *)holder, 0);
}

/* Virtual time stands still for an answer that comes for certain. A limit here would be one of the machine's time, and
 * what it ended would be recorded as an answer that never came: the driver gives up a task that keeps the turn. */
static bool wait_readable(struct task *task, int fd, int64_t deadline_ns, bool may_block) {
    bool may_stay_away = may_block || atomic_load_explicit(&task->page->unreliable, memory_order_acquire);
    if (is_virtual(task) && may_stay_away) task_await(task, is_readable, &fd, deadline_ns);
    if (is_virtual(task)) return readable(fd, may_stay_away ? 0 : NO_LIMIT);
    for (;;) {
        int64_t left_ns = deadline_ns - clock_real_mono_ns();
        int64_t left_ms = left_ns <= 0 ? 0 : clock_ms_rounded_up(left_ns);
        if (readable(fd, left_ms > 60000 ? 60000 : (int)left_ms)) return true;
        if (clock_real_mono_ns() >= deadline_ns) return false;
    }
}

bool task_wait_readable(struct task *task, int fd, int64_t deadline_ns, bool may_block) {
    stand(task);
    bool here = task->carrier ? task->carrier->await_readable(task->carrier, task->place, fd, deadline_ns)
                              : wait_readable(task, fd, deadline_ns, may_block);
    move_on(task);
    return here;
}

static bool is_armed_at(const struct task_slot *slot, const char *name) {
    return strcmp(slot->armed_at, SHARED_PAGE_ANYWHERE) == 0 ||
           strncmp(slot->armed_at, name, sizeof slot->armed_at) == 0;
}

bool task_checkpoint(struct task *task, const char *name) {
    struct task_slot *slot = task->place;
    if (!is_virtual(task) && atomic_load(&slot->stopped) & TASK_STOP_STALL) move_on(task);
    uint32_t countdown = atomic_load_explicit(&slot->armed_countdown, memory_order_acquire);
    if (countdown == 0 || !is_armed_at(slot, name)) return false;
    /* In real time the driver may arm anew at this moment: then its number is kept. */
    if (!atomic_compare_exchange_strong(&slot->armed_countdown, &countdown, countdown - 1) || countdown > 1)
        return false;
    strncpy(slot->held_at, name, sizeof slot->held_at - 1);
    task_park(task, TASK_HELD);
    return true;
}
