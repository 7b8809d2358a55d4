/* The scheduler itself: it gives turns and moves the clock. */
#include "harness/scheduler/scheduler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/hang_limit.h"
#include "harness/scheduler/scheduler_state.h"
#include "harness/scheduler/wakeup.h"

enum { REAL_POLL_NS = HANG_LIMIT_LOOK_MS * CLOCK_NS_PER_MS };

enum task_state scheduler_state(const struct scheduler *scheduler, int task) {
    return (enum task_state)atomic_load_explicit(&scheduler->page->tasks[task].state, memory_order_acquire);
}

static void state_set(struct scheduler *scheduler, int task, enum task_state state) {
    atomic_store_explicit(&scheduler->page->tasks[task].state, (uint32_t)state, memory_order_release);
}

static int64_t task_deadline_of(const struct scheduler *scheduler, int task) {
    return atomic_load_explicit(&scheduler->page->tasks[task].deadline_ns, memory_order_relaxed);
}

static bool shares_descriptors(const struct scheduler *scheduler, int task) {
    return task > 0 && scheduler->driven[task].turn_fd == scheduler->driven[task - 1].turn_fd;
}

static bool is_stopped(const struct scheduler *scheduler, int task) {
    return atomic_load_explicit(&scheduler->page->tasks[task].stopped, memory_order_acquire);
}

/* --- setting up --- */

static void *array_new(uint32_t count, size_t size) {
    void *array = calloc(count, size);
    if (!array) abort();
    return array;
}

struct scheduler *scheduler_open(const char *path, struct history_error *error) {
    struct shared_page *page = shared_page_open(path, error);
    if (!page) return NULL;
    struct scheduler *scheduler = calloc(1, sizeof *scheduler);
    if (!scheduler) abort();
    scheduler->page = page;
    scheduler->driven = array_new(page->task_count, sizeof *scheduler->driven);
    scheduler->ready = array_new(page->task_count, sizeof *scheduler->ready);
    scheduler->polled_task = array_new(page->task_count, sizeof *scheduler->polled_task);
    scheduler->polled = array_new(page->task_count + 2, sizeof *scheduler->polled);
    scheduler->fence = fence_open(page);
    scheduler->random = random_split(page->seed, 0);
    scheduler->signal_fd = -1;
    scheduler->patience_ns = INT64_MAX;
    scheduler->yield_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (scheduler->yield_fd >= 0) return scheduler;
    history_fail(error, "eventfd: %s", strerror(errno));
    scheduler_close(scheduler);
    return NULL;
}

void scheduler_close(struct scheduler *scheduler) {
    if (!scheduler) return;
    for (int task = 0; task < scheduler->tasks; task++) {
        if (!shares_descriptors(scheduler, task)) close(scheduler->driven[task].turn_fd);
        if (scheduler->driven[task].pid_fd >= 0) close(scheduler->driven[task].pid_fd);
    }
    free(scheduler->driven);
    free(scheduler->ready);
    free(scheduler->polled_task);
    free(scheduler->polled);
    server_clocks_close(scheduler);
    fence_close(scheduler->fence);
    if (scheduler->yield_fd >= 0) close(scheduler->yield_fd);
    shared_page_close(scheduler->page);
    free(scheduler);
}

void scheduler_set_signal_fd(struct scheduler *scheduler, int fd) {
    scheduler->signal_fd = fd;
}

void scheduler_set_patience(struct scheduler *scheduler, int64_t patience_ns) {
    scheduler->patience_ns = patience_ns;
}

void scheduler_set_unreliable(struct scheduler *scheduler) {
    atomic_store_explicit(&scheduler->page->unreliable, 1, memory_order_release);
    fence_mark_unsettled(scheduler->fence);
}

int64_t scheduler_mono_ns(const struct scheduler *scheduler) {
    return shared_page_mono_ns(scheduler->page);
}

int64_t scheduler_wall_ns(const struct scheduler *scheduler) {
    return shared_page_wall_ns(scheduler->page);
}

/* --- servers --- */

int scheduler_add_server(struct scheduler *scheduler, const char *clock_path, const char *socket_path,
                         struct history_error *error) {
    if (!server_clocks_add(scheduler, clock_path, error)) return -1;
    fence_add_server(scheduler->fence, socket_path);
    return scheduler->servers++;
}

struct shared_page *scheduler_page(const struct scheduler *scheduler) {
    return scheduler->page;
}

/* --- tasks --- */

int scheduler_yield_fd(const struct scheduler *scheduler) {
    return scheduler->yield_fd;
}

int scheduler_turn_fd(const struct scheduler *scheduler, int task) {
    return scheduler->driven[task].turn_fd;
}

int scheduler_add_task(struct scheduler *scheduler) {
    if (scheduler->tasks == (int)scheduler->page->task_count) return -1;
    int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0) return -1;
    scheduler->driven[scheduler->tasks].turn_fd = fd;
    scheduler->driven[scheduler->tasks].pid_fd = -1;
    return scheduler->tasks++;
}

int scheduler_add_group(struct scheduler *scheduler, int count) {
    if (count > (int)scheduler->page->task_count - scheduler->tasks) return -1;
    int first = scheduler_add_task(scheduler);
    for (int each = 1; first >= 0 && each < count; each++) {
        scheduler->driven[scheduler->tasks].turn_fd = scheduler->driven[first].turn_fd;
        scheduler->driven[scheduler->tasks++].pid_fd = -1;
    }
    for (int each = 0; first >= 0 && each < count; each++) scheduler->driven[first + each].is_group = true;
    return first;
}

void scheduler_expect(struct scheduler *scheduler, int task) {
    state_set(scheduler, task, TASK_RUNNING);
}

bool scheduler_watch(struct scheduler *scheduler, int task, int pid) {
    if (!shares_descriptors(scheduler, task)) {
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd < 0) return false;
        scheduler->driven[task].pid_fd = fd;
    }
    scheduler->page->tasks[task].pid = pid;
    return true;
}

void scheduler_forget_process(struct scheduler *scheduler, int pid) {
    for (int task = 0; task < scheduler->tasks; task++) {
        if (scheduler->page->tasks[task].pid != pid) continue;
        state_set(scheduler, task, TASK_GONE);
        if (scheduler->driven[task].pid_fd >= 0) close(scheduler->driven[task].pid_fd);
        scheduler->driven[task].pid_fd = -1;
    }
    for (int each = 0; each < STOPPED_PROCESSES_MAX; each++)
        if (scheduler->stopped[each].pid == pid) scheduler->stopped[each].pid = scheduler->stopped[each].reasons = 0;
}

void scheduler_reuse_task(struct scheduler *scheduler, int task) {
    struct task_slot *slot = &scheduler->page->tasks[task];
    wakeup_drain(scheduler->driven[task].turn_fd);
    scheduler->driven[task].stalled = 0;
    atomic_store(&slot->stopped, 0);
    slot->pid = 0;
    atomic_store(&slot->appends, 0);
    atomic_store(&slot->standing, 0);
    atomic_store(&slot->deadline_ns, 0);
    atomic_store(&slot->armed_countdown, 0);
    atomic_store(&slot->valid_until_ns, 0);
    memset(slot->held_at, 0, SHARED_PAGE_NAME);
    slot->step = (struct step){.kind = STEP_NONE};
    state_set(scheduler, task, TASK_ABSENT); /* last: it publishes the slot (memory_order_release) */
}

void scheduler_step(struct scheduler *scheduler, int task, const struct step *step) {
    struct task_slot *slot = &scheduler->page->tasks[task];
    assert(task < scheduler->tasks && step->kind != STEP_NONE);
    slot->step = *step;
    atomic_store_explicit(&slot->last_turn, 0, memory_order_relaxed);
    slot->result = (struct step_result){.outcome = OUTCOME_UNKNOWN};
    state_set(scheduler, task, TASK_READY);
}

void scheduler_continue(struct scheduler *scheduler, int task) {
    memset(scheduler->page->tasks[task].held_at, 0, SHARED_PAGE_NAME);
    state_set(scheduler, task, TASK_READY);
}

void scheduler_arm(struct scheduler *scheduler, int task, const char *checkpoint, uint32_t nth) {
    struct task_slot *slot = &scheduler->page->tasks[task];
    assert(task < scheduler->tasks);
    /* Disarmed while the name changes: in real time the task may be at a checkpoint just now. */
    atomic_store_explicit(&slot->armed_countdown, 0, memory_order_release);
    memset(slot->armed_at, 0, sizeof slot->armed_at);
    strncpy(slot->armed_at, checkpoint, sizeof slot->armed_at - 1);
    atomic_store_explicit(&slot->armed_countdown, nth, memory_order_release);
}

void scheduler_wind_down(struct scheduler *scheduler, int task) {
    atomic_store_explicit(&scheduler->page->tasks[task].last_turn, 1, memory_order_release);
}

bool scheduler_task_stands(const struct scheduler *scheduler, int task) {
    return shared_page_is_virtual(scheduler->page) || atomic_load(&scheduler->page->tasks[task].standing) != 0;
}

uint64_t scheduler_task_moves(const struct scheduler *scheduler, int task) {
    return atomic_load(&scheduler->page->tasks[task].moves);
}

const char *scheduler_held_at(const struct scheduler *scheduler, int task) {
    return scheduler->page->tasks[task].held_at;
}

struct step_result scheduler_result_of(const struct scheduler *scheduler, int task) {
    return scheduler->page->tasks[task].result;
}

int scheduler_dead(const struct scheduler *scheduler) {
    return scheduler->dead;
}

/* --- turns --- */

static void give_turn(struct scheduler *scheduler, int task, enum task_state state) {
    state_set(scheduler, task, state);
    wakeup_send(scheduler->driven[task].turn_fd);
}

/* The tasks that a run waits for. */
struct awaited {
    const int *tasks;
    int count;
    bool first; /* one of them is enough */
};

static bool have_parked(const struct scheduler *scheduler, const struct awaited *awaited) {
    int parked = 0;
    for (int each = 0; each < awaited->count; each++) {
        enum task_state state = scheduler_state(scheduler, awaited->tasks[each]);
        parked += state == TASK_IDLE || state == TASK_HELD || state == TASK_GONE;
    }
    return parked > 0 && (awaited->first || parked == awaited->count);
}

static bool any_task_runs(const struct scheduler *scheduler) {
    for (int task = 0; task < scheduler->tasks; task++) {
        enum task_state state = scheduler_state(scheduler, task);
        if ((state == TASK_RUNNING || state == TASK_PROBING) && !is_stopped(scheduler, task)) return true;
    }
    return false;
}

/* Waits until a task gives its turn back, a client ends or a signal comes, at most timeout_ms. DONE: a task did; STUCK:
 * nothing happened. */
static enum scheduler_result await_event(struct scheduler *scheduler, int timeout_ms) {
    struct pollfd *fds = scheduler->polled;
    nfds_t processes = 0;
    fds[0] = (struct pollfd){.fd = scheduler->yield_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = scheduler->signal_fd, .events = POLLIN};
    for (int task = 0; task < scheduler->tasks; task++) {
        if (scheduler->driven[task].pid_fd < 0) continue;
        scheduler->polled_task[processes] = task;
        fds[2 + processes++] = (struct pollfd){.fd = scheduler->driven[task].pid_fd, .events = POLLIN};
    }
    int ready = poll(fds, 2 + processes, timeout_ms);
    if (ready < 0) return errno == EINTR ? SCHEDULER_INTERRUPTED : SCHEDULER_FAILED;
    if (ready == 0) return SCHEDULER_STUCK;
    if (fds[1].revents & POLLIN) {
        wakeup_drain(scheduler->signal_fd);
        return SCHEDULER_INTERRUPTED;
    }
    for (nfds_t each = 0; each < processes; each++) {
        if (!(fds[2 + each].revents & POLLIN)) continue;
        scheduler->dead = scheduler->page->tasks[scheduler->polled_task[each]].pid;
        scheduler_forget_process(scheduler, scheduler->dead);
        return SCHEDULER_DIED;
    }
    /* Last: a process that has given its turn back and then ended is reported as DIED, not as a turn that is over. */
    wakeup_drain(scheduler->yield_fd);
    return SCHEDULER_DONE;
}

/* STUCK: nothing happened for limit_ms of the time that counts. */
static enum scheduler_result await_event_within(struct scheduler *scheduler, int limit_ms) {
    int64_t until_ns = hang_limit_deadline_ns(limit_ms);
    for (;;) {
        bool is_last = hang_limit_is_over(until_ns);
        enum scheduler_result result = await_event(scheduler, is_last ? 0 : HANG_LIMIT_LOOK_MS);
        if (result != SCHEDULER_STUCK || is_last) return result;
    }
}

static enum scheduler_result await_yield(struct scheduler *scheduler, int real_limit_ms) {
    while (any_task_runs(scheduler)) {
        enum scheduler_result result = await_event_within(scheduler, real_limit_ms);
        if (result != SCHEDULER_DONE) return result;
    }
    return SCHEDULER_DONE;
}

/* Lists the tasks that want the turn in scheduler->ready; returns their number. */
static int list_ready(struct scheduler *scheduler) {
    int count = 0;
    for (int task = 0; task < scheduler->tasks; task++)
        if (scheduler_state(scheduler, task) == TASK_READY && !is_stopped(scheduler, task))
            scheduler->ready[count++] = task;
    return count;
}

/* Asks every task that waits for a server whether its answer has come; those that have it are READY afterwards. */
static enum scheduler_result probe_waiting(struct scheduler *scheduler, int real_limit_ms) {
    bool settled = false;
    for (int task = 0; task < scheduler->tasks; task++) {
        if (scheduler_state(scheduler, task) != TASK_WAITING || is_stopped(scheduler, task)) continue;
        /* Once for all: a task that only looks at its socket sends nothing, so nothing new comes into flight. */
        if (!settled && !fence_settle(scheduler->fence)) return SCHEDULER_STUCK;
        settled = true;
        give_turn(scheduler, task, TASK_PROBING);
        enum scheduler_result result = await_yield(scheduler, real_limit_ms);
        if (result != SCHEDULER_DONE) return result;
    }
    return SCHEDULER_DONE;
}

/* --- time --- */

/* At this time a server may have to answer a task that waits, or to act by its clock, or the proxy to pass something
 * on. */
static bool is_awaited(const struct scheduler *scheduler, int64_t mono_ns) {
    if (atomic_load_explicit(&scheduler->page->proxy_deadline_ns, memory_order_acquire) <= mono_ns) return true;
    for (int task = 0; task < scheduler->tasks; task++)
        if (scheduler_state(scheduler, task) == TASK_WAITING) return true;
    return fence_has_timer(scheduler->fence);
}

static bool clock_move(struct scheduler *scheduler, int64_t mono_ns) {
    assert(mono_ns > scheduler_mono_ns(scheduler)); /* a trial's time never goes back */
    for (int server = 0; server < scheduler->servers; server++)
        if (scheduler->server_clocks[server].fd >= 0) fence_mark_clock(scheduler->fence, server);
    atomic_store_explicit(&scheduler->page->mono_ns, mono_ns, memory_order_release);
    if (is_awaited(scheduler, mono_ns)) fence_mark_unsettled(scheduler->fence);
    return server_clocks_write(scheduler);
}

static bool waits_until_deadline(const struct scheduler *scheduler, int task) {
    enum task_state state = scheduler_state(scheduler, task);
    return !is_stopped(scheduler, task) && (state == TASK_SLEEPING || state == TASK_WAITING);
}

/* Moves the clock to the next deadline of a task, the proxy or a server's process, at most to until_ns. LATE: that is
 * after late_ns. */
static enum scheduler_result time_advance(struct scheduler *scheduler, int64_t until_ns, int64_t late_ns) {
    int64_t next_ns = INT64_MAX, now_ns = scheduler_mono_ns(scheduler);
    for (int task = 0; task < scheduler->tasks; task++) {
        if (!waits_until_deadline(scheduler, task)) continue;
        if (task_deadline_of(scheduler, task) < next_ns) next_ns = task_deadline_of(scheduler, task);
    }
    int64_t proxy_ns = atomic_load_explicit(&scheduler->page->proxy_deadline_ns, memory_order_acquire);
    if (proxy_ns < next_ns) next_ns = proxy_ns;
    int64_t alarm_ns = server_clocks_next_alarm_ns(scheduler);
    if (alarm_ns < next_ns) next_ns = alarm_ns;
    if (next_ns > until_ns) next_ns = until_ns;
    if (next_ns == INT64_MAX) return SCHEDULER_QUIET;
    if (next_ns > late_ns) return SCHEDULER_LATE;
    if (next_ns > now_ns && !clock_move(scheduler, next_ns)) return SCHEDULER_FAILED;
    if (server_clocks_ring(scheduler) > 0) fence_mark_unsettled(scheduler->fence);
    return SCHEDULER_DONE;
}

/* Makes every task READY that has reached its deadline; called only after servers could act by the new time. Returns
 * the number of such tasks. */
static int wake_due_tasks(struct scheduler *scheduler) {
    int woken = 0;
    int64_t now_ns = scheduler_mono_ns(scheduler);
    for (int task = 0; task < scheduler->tasks; task++) {
        if (!waits_until_deadline(scheduler, task) || task_deadline_of(scheduler, task) > now_ns) continue;
        state_set(scheduler, task, TASK_READY);
        woken++;
    }
    return woken;
}

/* --- running --- */

static enum scheduler_result run_virtual(struct scheduler *scheduler, const struct awaited *awaited, int64_t until_ns,
                                         int real_limit_ms) {
    int64_t now_ns = scheduler_mono_ns(scheduler), patience_ns = scheduler->patience_ns;
    bool bounded = until_ns != INT64_MAX || patience_ns > INT64_MAX - now_ns;
    int64_t late_ns = bounded ? INT64_MAX : now_ns + patience_ns;
    fence_mark_all(scheduler->fence); /* the driver may have done anything between two runs */
    for (;;) {
        enum scheduler_result result = await_yield(scheduler, real_limit_ms);
        if (result != SCHEDULER_DONE) return result;
        if (!fence_settle_before_turn(scheduler->fence)) return SCHEDULER_STUCK;
        if (have_parked(scheduler, awaited)) return SCHEDULER_DONE;
        int wanting = list_ready(scheduler);
        assert(!any_task_runs(scheduler)); /* exactly one task has the turn: order comes from the seed alone */
        if (wanting > 0) {                 /* the only choice of a trial */
            uint64_t drawn = wanting > 1 ? random_below(&scheduler->random, (uint64_t)wanting) : 0;
            give_turn(scheduler, scheduler->ready[drawn], TASK_RUNNING);
            continue;
        }
        /* Answers before deadlines: a reply that has come by now is not lost to a limit that ends now. */
        result = probe_waiting(scheduler, real_limit_ms);
        if (result != SCHEDULER_DONE) return result;
        if (list_ready(scheduler) > 0 || wake_due_tasks(scheduler)) continue;
        if (scheduler_mono_ns(scheduler) >= until_ns) return SCHEDULER_TIME;
        result = time_advance(scheduler, until_ns, late_ns);
        if (result != SCHEDULER_DONE) return result;
    }
}

static enum scheduler_result run_real(struct scheduler *scheduler, const struct awaited *awaited, int64_t until_ns,
                                      int real_limit_ms) {
    int64_t limit_ns = hang_limit_deadline_ns(real_limit_ms);
    int wanting = list_ready(scheduler);
    for (int each = 0; each < wanting; each++) give_turn(scheduler, scheduler->ready[each], TASK_RUNNING);
    for (;;) {
        if (have_parked(scheduler, awaited)) return SCHEDULER_DONE;
        int64_t left_ns = until_ns - clock_real_mono_ns();
        if (left_ns <= 0) return SCHEDULER_TIME;
        if (hang_limit_is_over(limit_ns)) return SCHEDULER_STUCK;
        int64_t left_ms = clock_ms_rounded_up(left_ns < REAL_POLL_NS ? left_ns : REAL_POLL_NS);
        enum scheduler_result result = await_event(scheduler, (int)left_ms);
        if (result != SCHEDULER_DONE && result != SCHEDULER_STUCK) return result;
    }
}

enum scheduler_result scheduler_run(struct scheduler *scheduler, const int *awaited, int count, bool first,
                                    int64_t until_ns, int real_limit_ms) {
    bool is_virtual = shared_page_is_virtual(scheduler->page);
    struct awaited all = {awaited, count, first};
    return (is_virtual ? run_virtual : run_real)(scheduler, &all, until_ns, real_limit_ms);
}

bool scheduler_settle(struct scheduler *scheduler) {
    fence_mark_all(scheduler->fence);
    return fence_settle(scheduler->fence);
}
