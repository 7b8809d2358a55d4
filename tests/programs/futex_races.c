/* Threads that race for mutexes, conditions, semaphores, barriers and timed waits, some of them cancelled. What
 * they have done together is the same on every machine; it is printed. Arguments: number of rounds of each race, "pi"
 * for mutexes with priority inheritance. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/programs/stamps.h"

enum { THREADS = 6, PLACES = 3 };

static int rounds;
static pthread_mutexattr_t kind;

static unsigned next_random(unsigned *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

static void run_all(void *(*run)(void *)) {
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    for (unsigned each = 0; each < THREADS; each++) {
        seeds[each] = each + 1;
        if (pthread_create(&threads[each], NULL, run, &seeds[each]) != 0) abort();
    }
    for (int each = 0; each < THREADS; each++) pthread_join(threads[each], NULL);
}

static void check(bool good, const char *what) {
    if (good) return;
    printf("broken: %s\n", what);
    exit(1);
}

/* --- mutexes, with and without a limit of time --- */

static pthread_mutex_t mutex;
static int inside, entries, timeouts;

static void *enter_and_leave(void *seed) {
    for (int round = 0; round < rounds;) {
        struct timespec until = deadline_of_ms(CLOCK_REALTIME, next_random(seed) % 3);
        if (next_random(seed) % 2) pthread_mutex_lock(&mutex);
        else if (pthread_mutex_timedlock(&mutex, &until) != 0) {
            __atomic_fetch_add(&timeouts, 1, __ATOMIC_RELAXED);
            continue;
        }
        check(++inside == 1, "two threads hold the mutex");
        entries++;
        if (next_random(seed) % 8 == 0) usleep(next_random(seed) % 2000);
        inside--;
        pthread_mutex_unlock(&mutex);
        round++;
    }
    return NULL;
}

/* --- a bounded buffer: two conditions, one of them waited for with a limit --- */

static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int buffer[PLACES], filled, produced, consumed;
static int64_t sum_produced, sum_consumed;

static void produce(int value) {
    pthread_mutex_lock(&mutex);
    while (filled == PLACES) pthread_cond_wait(&not_full, &mutex);
    buffer[filled++] = value;
    check(filled <= PLACES, "the buffer runs over");
    produced++;
    sum_produced += value;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&mutex);
}

static void consume(unsigned limit_ms) {
    pthread_mutex_lock(&mutex);
    while (filled == 0) {
        struct timespec until = deadline_of_ms(CLOCK_REALTIME, limit_ms);
        pthread_cond_timedwait(&not_empty, &mutex, &until);
    }
    sum_consumed += buffer[--filled];
    consumed++;
    if (consumed % 3 == 0) pthread_cond_broadcast(&not_full);
    else pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&mutex);
}

static void *produce_or_consume(void *seed) {
    bool produces = *(unsigned *)seed % 2;
    for (int round = 0; round < rounds; round++) {
        if (produces) produce(round);
        else consume(next_random(seed) % 5);
        if (next_random(seed) % 16 == 0) sched_yield();
    }
    return NULL;
}

/* --- barriers, semaphores, shared locks --- */

static pthread_barrier_t barrier;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static sem_t places;
static int serials, written, within, most_within;

static void *meet(void *seed) {
    for (int round = 0; round < rounds; round++) {
        if (next_random(seed) % 4 == 0) usleep(next_random(seed) % 500);
        int result = pthread_barrier_wait(&barrier);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD) __atomic_fetch_add(&serials, 1, __ATOMIC_RELAXED);
        sem_wait(&places);
        int now = __atomic_add_fetch(&within, 1, __ATOMIC_SEQ_CST);
        check(now <= PLACES, "too many passed the semaphore");
        if (next_random(seed) % 4 == 0) usleep(10);
        __atomic_sub_fetch(&within, 1, __ATOMIC_SEQ_CST);
        sem_post(&places);
        if (next_random(seed) % 3 == 0) {
            pthread_rwlock_wrlock(&shared);
            written++;
        } else {
            pthread_rwlock_rdlock(&shared);
            most_within = written > most_within ? written : most_within;
        }
        pthread_rwlock_unlock(&shared);
    }
    return NULL;
}

/* --- waits that are cancelled --- */

static int cancelled, cleaned;

static void clean(void *unused) {
    (void)unused;
    cleaned++;
    pthread_mutex_unlock(&mutex);
}

static void *wait_for_ever(void *condition) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(clean, NULL);
    for (;;) pthread_cond_wait(condition, &mutex);
    pthread_cleanup_pop(1);
    return NULL;
}

static void *cancel_some(void *seed) {
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    for (int round = 0; round < rounds / 4; round++) {
        pthread_t waiter;
        void *result;
        pthread_create(&waiter, NULL, wait_for_ever, &condition);
        switch (next_random(seed) % 4) {
        case 0: sched_yield(); break;
        case 1: usleep(next_random(seed) % 100); break;
        case 2: pthread_cond_broadcast(&condition); break;
        default: break;
        }
        pthread_cancel(waiter);
        pthread_join(waiter, &result);
        if (result == PTHREAD_CANCELED) __atomic_fetch_add(&cancelled, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    pthread_mutexattr_init(&kind);
    if (argc > 2) pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex, &kind);
    pthread_barrier_init(&barrier, NULL, THREADS);
    sem_init(&places, 0, PLACES);
    run_all(enter_and_leave);
    printf("mutex: %d entries, %d inside\n", entries, inside);
    run_all(produce_or_consume);
    printf("buffer: %d of %d left, %d produced, %d consumed, difference %" PRId64 "\n", filled, PLACES, produced,
           consumed, sum_produced - sum_consumed);
    run_all(meet);
    int free_places;
    sem_getvalue(&places, &free_places);
    printf("barrier: %d serial, semaphore: %d of %d free, shared lock: %d written\n", serials, free_places, PLACES,
           written);
    run_all(cancel_some);
    printf("cancelled: %d, cleaned up %s\n", cancelled, cleaned <= cancelled ? "as often at most" : "too often");
    printf("mutex: %d\n", pthread_mutex_trylock(&mutex));
    return 0;
}
