#include "harness/strand.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/clock.h"

static bool is_virtual(const struct strand *strand) {
    return strand->stage->time == HISTORY_TIME_VIRTUAL;
}

static void ring(int fd) {
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR) continue;
}

static void give_back(struct strand *strand, enum strand_state state) {
    atomic_store_explicit(&strand->place->state, (uint32_t)state, memory_order_release);
    ring(strand->yield_fd);
}

/* Waits for a ring of turn_fd. The driver's end of the world is ours: without it nobody gives turns. PR_SET_PDEATHSIG
 * normally ends us first. */
static void await_ring(struct strand *strand) {
    uint64_t count;
    ssize_t got;
    while ((got = read(strand->turn_fd, &count, sizeof count)) < 0 && errno == EINTR) continue;
    if (got != sizeof count) abort();
}

/* Whose turn it is says the state, not the ring: in real time that may be a strand_wake that came too late. */
static void await_turn(struct strand *strand) {
    do await_ring(strand);
    while (atomic_load_explicit(&strand->place->state, memory_order_acquire) != STRAND_RUNNING);
}

static void stand(struct strand *strand) {
    atomic_store(&strand->place->standing, 1);
}

/* In real time nobody gives turns: a strand that is stalled stands here. It says that it is about to go on before it
 * looks, so whoever stalls it and then sees it stand knows that it will not. */
static void move_on(struct strand *strand) {
    struct strand_place *place = strand->place;
    for (;;) {
        atomic_store(&place->standing, 0);
        uint32_t stopped = atomic_load(&place->stopped);
        if (is_virtual(strand) || !(stopped & STRAND_STOP_STALL)) break;
        atomic_store(&place->standing, 1);
        syscall(SYS_futex, &place->stopped, FUTEX_WAIT, stopped, NULL, NULL, 0);
    }
    atomic_fetch_add(&place->moves, 1);
}

void strand_park(struct strand *strand, enum strand_state state) {
    stand(strand);
    give_back(strand, state);
    await_turn(strand);
    move_on(strand);
}

void strand_enter(struct strand *strand) {
    if (is_virtual(strand)) strand_park(strand, STRAND_READY);
}

/* Until the stamp, or until somebody rings. */
static void sleep_real(struct strand *strand, int64_t deadline_ns) {
    int64_t left_ns;
    while ((left_ns = deadline_ns - clock_real_mono_ns()) > 0) {
        struct timespec left = {.tv_sec = left_ns / CLOCK_NS_PER_S, .tv_nsec = left_ns % CLOCK_NS_PER_S};
        if (ppoll(&(struct pollfd){.fd = strand->turn_fd, .events = POLLIN}, 1, &left, NULL) <= 0) continue;
        await_ring(strand);
        return;
    }
}

void strand_sleep_until(struct strand *strand, int64_t deadline_ns) {
    if (!is_virtual(strand)) {
        stand(strand);
        sleep_real(strand, deadline_ns);
        move_on(strand);
        return;
    }
    atomic_store_explicit(&strand->place->deadline_ns, deadline_ns, memory_order_relaxed);
    strand_park(strand, STRAND_SLEEPING);
}

/* In virtual time the caller has the turn, so the sleeper's state is nobody else's to change. */
void strand_wake(struct strand *sleeper) {
    if (!is_virtual(sleeper)) {
        ring(sleeper->turn_fd);
    } else if (atomic_load_explicit(&sleeper->place->state, memory_order_acquire) == STRAND_SLEEPING) {
        atomic_store_explicit(&sleeper->place->state, STRAND_READY, memory_order_release);
    }
}

void strand_announce(struct strand *second) {
    uint32_t state = is_virtual(second) ? STRAND_READY : STRAND_RUNNING;
    atomic_store_explicit(&second->place->state, state, memory_order_release);
}

void strand_begin(struct strand *second) {
    if (is_virtual(second)) await_turn(second);
}

void strand_end(struct strand *second, struct strand *first) {
    bool awaited = atomic_load_explicit(&first->place->deadline_ns, memory_order_relaxed) == INT64_MAX;
    if (is_virtual(second) && awaited) strand_wake(first);
    give_back(second, STRAND_GONE);
}

bool strand_has_ended(const struct strand *second) {
    return atomic_load_explicit(&second->place->state, memory_order_acquire) == STRAND_GONE;
}

/* The caller joins the thread afterwards, which in real time is all the waiting there is to do. */
void strand_await_end(struct strand *first, struct strand *second) {
    strand_wake(second);
    while (is_virtual(first) && !strand_has_ended(second)) strand_sleep_until(first, INT64_MAX);
}

/* Whether one of `fds` is readable within timeout_ms of real time. */
static bool readable(struct pollfd *fds, nfds_t count, int timeout_ms) {
    int ready;
    int64_t until_ns = clock_real_mono_ns() + (int64_t)timeout_ms * CLOCK_NS_PER_MS;
    while ((ready = poll(fds, count, timeout_ms)) < 0 && errno == EINTR && timeout_ms > 0) {
        int64_t left_ns = until_ns - clock_real_mono_ns();
        timeout_ms = left_ns > 0 ? (int)(left_ns / CLOCK_NS_PER_MS) + 1 : 0;
    }
    return ready > 0;
}

/* Others have the turn meanwhile. Only the conductor wakes us, never the socket, or the order would be the machine's:
 * it asks us to look (PROBING), or gives the turn because the answer is there or the deadline has passed (RUNNING). */
static bool wait_without_turn(struct strand *strand, int fd, int64_t deadline_ns) {
    atomic_store_explicit(&strand->place->deadline_ns, deadline_ns, memory_order_relaxed);
    give_back(strand, STRAND_WAITING);
    for (;;) {
        await_ring(strand);
        bool here = readable(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0);
        if (atomic_load_explicit(&strand->place->state, memory_order_acquire) != STRAND_PROBING) return here;
        give_back(strand, here ? STRAND_READY : STRAND_WAITING);
    }
}

static bool wait_readable(struct strand *strand, int fd, int64_t deadline_ns, bool may_block) {
    struct pollfd socket = {.fd = fd, .events = POLLIN};
    bool may_stay_away = may_block || atomic_load_explicit(&strand->stage->unreliable, memory_order_acquire);
    if (is_virtual(strand))
        return may_stay_away ? wait_without_turn(strand, fd, deadline_ns) : readable(&socket, 1, STRAND_REPLY_LIMIT_MS);
    for (;;) {
        int64_t left_ns = deadline_ns - clock_real_mono_ns();
        int64_t left_ms = left_ns <= 0 ? 0 : (left_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
        if (readable(&socket, 1, left_ms > 60000 ? 60000 : (int)left_ms)) return true;
        if (clock_real_mono_ns() >= deadline_ns) return false;
    }
}

bool strand_wait_readable(struct strand *strand, int fd, int64_t deadline_ns, bool may_block) {
    stand(strand);
    bool here = wait_readable(strand, fd, deadline_ns, may_block);
    move_on(strand);
    return here;
}

static bool is_armed_at(const struct strand_place *place, const char *name) {
    return strcmp(place->armed_at, STAGE_ANYWHERE) == 0 || strncmp(place->armed_at, name, sizeof place->armed_at) == 0;
}

bool strand_checkpoint(struct strand *strand, const char *name) {
    struct strand_place *place = strand->place;
    if (!is_virtual(strand) && atomic_load(&place->stopped) & STRAND_STOP_STALL) move_on(strand);
    uint32_t countdown = atomic_load_explicit(&place->armed_countdown, memory_order_acquire);
    if (countdown == 0 || !is_armed_at(place, name)) return false;
    /* In real time the driver may arm anew in this moment: then its number stands. */
    if (!atomic_compare_exchange_strong(&place->armed_countdown, &countdown, countdown - 1) || countdown > 1)
        return false;
    strncpy(place->held_at, name, sizeof place->held_at - 1);
    strand_park(strand, STRAND_HELD);
    return true;
}
