/* lock_threads LOCK THREADS TURNS WAIT_MS PAGE NODE...: one lock among the threads of one process, in real time and
 * against real servers. NODE is the unix socket of a redis-server, or a connection string for PostgreSQL. PAGE is a
 * path where no file exists yet.
 *
 * Every thread has its own live environment, slot for a watchdog and opened lock, all on one resource with a lease of
 * LEASE_MS. They begin together, and each takes TURNS turns: acquire, stay inside for SECTION_MS, release. A thread
 * that is refused within WAIT_MS gives that turn up; with WAIT_MS -1 it asks again until it is granted.
 *
 * Inside, a thread counts itself in, which is a violation unless it is alone, and increments a sum in two steps, read
 * and write: two threads at once lose an increment. Both are relaxed atomics. The servers order the threads, where
 * ThreadSanitizer cannot see it; any order of the test's own would hide from it what the lock's code shares by mistake.
 *
 * Prints one JSON line. Exit status: 0 no violation, no lost increment, every request answered and every grant
 * released; 1 otherwise; 2 bad usage, or a lock was not opened. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "harness/environment/env_live.h"
#include "harness/locks/common/lock.h"

enum { THREADS_MAX = SHARED_PAGE_TASKS / 2, LEASE_MS = 10000, REPLY_LIMIT_MS = 1000, SECTION_MS = 1 };
enum { ARGUMENT_LOCK = 1, ARGUMENT_THREADS, ARGUMENT_TURNS, ARGUMENT_WAIT_MS, ARGUMENT_PAGE, ARGUMENT_NODES };

static const struct lock_options OPTIONS = {"threads", sizeof "threads" - 1, LEASE_MS, .permits = 1};

struct thread_counts {
    int64_t grants;
    int64_t refusals;   /* turns given up */
    int64_t violations; /* entered while another thread was inside */
    int64_t unknown;    /* acquires without an answer */
    int64_t unreleased; /* releases that were not OK */
};

struct contender {
    struct arena *arena;
    pthread_t thread;
    struct env_live_options environment;
    struct env *env;
    struct lock lock;
    enum outcome opened;
    struct thread_counts counts;
};

struct arena {
    const struct lock_type *type;
    int64_t threads, turns, wait_ms;
    pthread_barrier_t all_opened;
    _Atomic int64_t inside;
    _Atomic int64_t sum;
    struct contender contenders[THREADS_MAX];
};

/* --- a thread --- */

static void stay_inside(struct contender *contender) {
    struct arena *arena = contender->arena;
    if (atomic_fetch_add_explicit(&arena->inside, 1, memory_order_relaxed) != 0) contender->counts.violations++;
    int64_t sum = atomic_load_explicit(&arena->sum, memory_order_relaxed);
    env_sleep(contender->env, SECTION_MS);
    atomic_store_explicit(&arena->sum, sum + 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&arena->inside, 1, memory_order_relaxed);
}

static enum outcome ask(struct contender *contender) {
    int64_t wait_ms = contender->arena->wait_ms;
    enum outcome outcome;
    do outcome = lock_acquire(&contender->lock, wait_ms).outcome;
    while (outcome == OUTCOME_REFUSED && wait_ms < 0);
    return outcome;
}

static void take_turn(struct contender *contender) {
    struct thread_counts *counts = &contender->counts;
    enum outcome outcome = ask(contender);
    if (outcome == OUTCOME_OK) {
        counts->grants++;
        stay_inside(contender);
    }
    counts->refusals += outcome == OUTCOME_REFUSED;
    counts->unknown += outcome == OUTCOME_UNKNOWN;
    if (outcome != OUTCOME_REFUSED && lock_release(&contender->lock) != OUTCOME_OK) counts->unreleased++;
}

static void *contend(void *argument) {
    struct contender *contender = argument;
    struct arena *arena = contender->arena;
    contender->env = env_live_open(&contender->environment);
    contender->opened = lock_open(&contender->lock, arena->type, contender->env, &OPTIONS);
    pthread_barrier_wait(&arena->all_opened);
    for (int64_t turn = 0; contender->opened == OUTCOME_OK && turn < arena->turns; turn++) take_turn(contender);
    lock_close(&contender->lock);
    env_live_close(contender->env);
    return NULL;
}

/* --- all of them --- */

static int event(void) {
    int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0) abort();
    return fd;
}

/* There is no scheduler: in real time tasks wake only their watchdog, and a driver that does not exist here. */
static void start(struct arena *arena, struct shared_page *page, int yield_fd, char **nodes, int node_count) {
    for (int each = 0; each < arena->threads; each++) {
        struct contender *contender = &arena->contenders[each];
        struct task_slot *slots = &page->tasks[2 * each];
        contender->arena = arena;
        contender->environment = (struct env_live_options){.worker = {page, &slots[0], event(), yield_fd, NULL},
                                                           .watchdog = {page, &slots[1], event(), yield_fd, NULL},
                                                           .node_count = node_count,
                                                           .reply_limit_ms = REPLY_LIMIT_MS,
                                                           .stream = (uint64_t)each};
        for (int node = 0; node < node_count; node++) contender->environment.nodes[node] = nodes[node];
        if (pthread_create(&contender->thread, NULL, contend, contender) != 0) abort();
    }
}

/* False: a lock was not opened. */
static bool finish(struct arena *arena, struct thread_counts *all) {
    bool opened = true;
    for (int each = 0; each < arena->threads; each++) {
        struct contender *contender = &arena->contenders[each];
        const struct thread_counts *counts = &contender->counts;
        pthread_join(contender->thread, NULL);
        close(contender->environment.worker.turn_fd);
        close(contender->environment.watchdog.turn_fd);
        opened &= contender->opened == OUTCOME_OK;
        all->grants += counts->grants;
        all->refusals += counts->refusals;
        all->violations += counts->violations;
        all->unknown += counts->unknown;
        all->unreleased += counts->unreleased;
    }
    return opened;
}

static bool report(struct arena *arena, const struct thread_counts *all) {
    int64_t sum = atomic_load_explicit(&arena->sum, memory_order_relaxed);
    printf("{\"lock\": \"%s\", \"grants\": %" PRId64 ", \"sum\": %" PRId64 ", \"violations\": %" PRId64
           ", \"refusals\": %" PRId64 ", \"unknown\": %" PRId64 ", \"unreleased\": %" PRId64 "}\n",
           arena->type->name, all->grants, sum, all->violations, all->refusals, all->unknown, all->unreleased);
    return all->violations == 0 && sum == all->grants && all->unknown == 0 && all->unreleased == 0;
}

static bool parse(struct arena *arena, int argc, char **argv) {
    if (argc <= ARGUMENT_NODES || argc > ARGUMENT_NODES + ENV_LIVE_NODES) return false;
    arena->type = lock_find(argv[ARGUMENT_LOCK]);
    arena->threads = strtoll(argv[ARGUMENT_THREADS], NULL, 10);
    arena->turns = strtoll(argv[ARGUMENT_TURNS], NULL, 10);
    arena->wait_ms = strtoll(argv[ARGUMENT_WAIT_MS], NULL, 10);
    return arena->type && arena->threads >= 1 && arena->threads <= THREADS_MAX && arena->turns >= 1 &&
           arena->wait_ms >= -1;
}

int main(int argc, char **argv) {
    static struct arena arena;
    if (!parse(&arena, argc, argv))
        return fprintf(stderr, "usage: lock_threads LOCK THREADS TURNS WAIT_MS PAGE NODE...\n"), 2;
    const char *path = argv[ARGUMENT_PAGE];
    struct history_error error;
    struct shared_page *page = shared_page_create(path, HISTORY_TIME_REAL, 1, SHARED_PAGE_TASKS, &error)
                                   ? shared_page_open(path, &error)
                                   : NULL;
    if (!page) return fprintf(stderr, "lock_threads: %s\n", error.text), 2;
    unlink(path); /* it is mapped */
    pthread_barrier_init(&arena.all_opened, NULL, (unsigned)arena.threads);
    int yield_fd = event();
    start(&arena, page, yield_fd, &argv[ARGUMENT_NODES], argc - ARGUMENT_NODES);
    struct thread_counts all = {0};
    bool opened = finish(&arena, &all);
    pthread_barrier_destroy(&arena.all_opened);
    close(yield_fd);
    shared_page_close(page);
    if (!opened) return fprintf(stderr, "lock_threads: a node did not answer while a lock was opened\n"), 2;
    return report(&arena, &all) ? 0 : 1;
}
