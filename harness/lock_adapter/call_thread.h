/* A thread of the program: executes the calls that it is given, one after the other, and writes their answers. */
#pragma once

#include <jansson.h>
#include <pthread.h>

#include "harness/lock_adapter/hosted_lock.h"

enum { CALLS_WAITING = 64, THREAD_LOCKS = 32 };

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
