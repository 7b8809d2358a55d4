/* A thread of the program: executes the calls that it is given, one after the other, and writes their answers. */
#pragma once

#include <jansson.h>
#include <pthread.h>

#include "harness/environment/env_live.h"
#include "harness/locks/common/lock.h"

enum { CALLS_WAITING = 64, THREAD_LOCKS = 32 };

/* What all lock objects of the program have in common. */
struct lock_site {
    const struct lock_type *type;
    struct shared_page *page; /* of this process alone, in real time */
    char *nodes[ENV_LIVE_NODES];
    int node_count;
    char *resource; /* of `open`, zero-terminated */
    int64_t lease_ms, permits;
    bool fixed_lease;
};

/* A C lock as a lock object of a library: an instance with an environment of its own, real sockets and this machine's
 * clocks. Used by one thread only. */
struct hosted_lock {
    int number; /* the lock object's, as its questions say */
    struct env *env;
    struct lock lock;
    struct lock_options options; /* as it was made; a lock may change its own */
    bool opened;
    bool acquires; /* it has been asked for an acquire */
    int place;     /* of its two tasks on the page */
    int turn_fd, watchdog_fd, yield_fd;
    char *resource;
    int64_t token; /* of the latest grant; 0: it holds none */
};

struct call_thread {
    const struct lock_site *site;
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows, up to `ends` */
    pthread_cond_t news;
    json_t *calls[CALLS_WAITING]; /* a ring */
    unsigned asked, taken, answered;
    bool ends;
    /* Of the thread alone: */
    struct hosted_lock locks[THREAD_LOCKS];
    int lock_count;
};

/* Starts it; false: it cannot be started. The site stays the caller's and does not change any more. */
bool call_thread_begin(struct call_thread *self, const struct lock_site *site);

/* Gives it a call, which it decrefs; false, and not taken: too many wait already. */
bool call_thread_give(struct call_thread *self, json_t *call);

bool call_thread_is_busy(struct call_thread *self);

/* Waits for its end, which comes when all calls have been answered, and drops its lock objects. */
void call_thread_end(struct call_thread *self);

/* Writes an answer as one line to standard output; `id` is that of `question`. The answer is the function's. */
void answer_write(const json_t *question, json_t *answer);

/* An answer; `error` may be NULL. */
json_t *answer_make(enum outcome outcome, const char *error);
