#include "harness/lock_adapter/call_thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- lock objects --- */

enum { REPLY_LIMIT_MS = 1000, HOSTED_LOCKS = SHARED_PAGE_TASKS / 2 /* most at once: each has two tasks */ };

/* Which pairs of tasks are in use. A place is used again, a stream of random numbers is not. */
static atomic_bool places[HOSTED_LOCKS];
static atomic_ulong streams;

static int place_take(void) {
    for (int place = 0; place < HOSTED_LOCKS; place++)
        if (!atomic_exchange(&places[place], true)) return place;
    return -1;
}

static void hosted_env_open(struct hosted_lock *hosted, const struct lock_site *site) {
    struct task_slot *slots = &site->page->tasks[2 * hosted->place];
    memset(slots, 0, 2 * sizeof *slots);
    struct env_live_options options = {
        .worker = {site->page, &slots[0], hosted->turn_fd, hosted->yield_fd, NULL},
        .watchdog = {site->page, &slots[1], hosted->watchdog_fd, hosted->yield_fd, NULL},
        .node_count = site->node_count,
        .reply_limit_ms = REPLY_LIMIT_MS,
        .stream = atomic_fetch_add(&streams, 1),
    };
    for (int node = 0; node < site->node_count; node++) options.nodes[node] = site->nodes[node];
    hosted->env = env_live_open(&options);
}

static int event_make(int flags) {
    int fd = eventfd(0, EFD_CLOEXEC | flags);
    if (fd >= 0) return fd;
    perror("lock-adapter: error: eventfd");
    exit(EXIT_FAILURE);
}

/* Makes the lock object; nothing is sent yet. lease_ms, fixed_lease: as in struct lock_options. The resource is copied.
 * Ends the program if there are no descriptors. */
static void hosted_lock_make(struct hosted_lock *hosted, const struct lock_site *site, const char *resource,
                             int64_t lease_ms, bool fixed_lease) {
    *hosted = (struct hosted_lock){.place = place_take(),
                                   .turn_fd = event_make(0),
                                   .watchdog_fd = event_make(0),
                                   .yield_fd = event_make(EFD_NONBLOCK), /* nobody reads it */
                                   .resource = strdup(resource)};
    if (hosted->place < 0 || !hosted->resource) abort();
    hosted->options =
        (struct lock_options){hosted->resource, strlen(hosted->resource), lease_ms, site->permits, fixed_lease};
    hosted_env_open(hosted, site);
}

/* Opens the lock if that has not succeeded yet; false: a node did not answer. */
static bool hosted_lock_ready(struct hosted_lock *hosted, const struct lock_site *site) {
    if (hosted->opened) return true;
    hosted->opened = lock_open(&hosted->lock, site->type, hosted->env, &hosted->options) == OUTCOME_OK;
    if (!hosted->opened) lock_close(&hosted->lock);
    return hosted->opened;
}

/* Ends its watchdog and its connections. It releases nothing. */
static void hosted_lock_end(struct hosted_lock *hosted) {
    if (hosted->opened) lock_close(&hosted->lock);
    env_live_close(hosted->env);
    close(hosted->turn_fd);
    close(hosted->watchdog_fd);
    close(hosted->yield_fd);
    free(hosted->resource);
    atomic_store(&places[hosted->place], false);
}

/* --- answers --- */

json_t *answer_make(enum outcome outcome, const char *error) {
    static const char *const WORDS[] = {
        [OUTCOME_UNKNOWN] = "unknown", [OUTCOME_OK] = "ok", [OUTCOME_REFUSED] = "refused"};
    return json_pack("{s:s,s:s*}", "outcome", WORDS[outcome], "error", error);
}

void answer_write(const json_t *question, json_t *answer) {
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
    json_object_set(answer, "id", json_object_get(question, "id"));
    char *line = json_dumps(answer, JSON_COMPACT);
    if (!line) abort();
    size_t length = strlen(line);
    line[length] = '\n'; /* in the place of the terminator: write is given the length */
    pthread_mutex_lock(&writing);
    bool written = write(STDOUT_FILENO, line, length + 1) == (ssize_t)length + 1;
    pthread_mutex_unlock(&writing);
    free(line);
    json_decref(answer);
    if (!written) _exit(EXIT_FAILURE); /* nobody reads any more */
}

/* --- calls --- */

static json_t *call_acquire(struct hosted_lock *hosted, const json_t *call) {
    const json_t *wait = json_object_get(call, "wait_ms");
    struct lock_grant grant = lock_acquire(&hosted->lock, json_is_integer(wait) ? json_integer_value(wait) : -1);
    json_t *answer = answer_make(grant.outcome, NULL);
    if (grant.outcome != OUTCOME_OK) return answer;
    hosted->token = grant.token;
    if (grant.token) json_object_set_new(answer, "token", json_integer(grant.token));
    if (grant.valid_until_ns)
        json_object_set_new(answer, "valid_until_ms", json_real((double)grant.valid_until_ns / (double)ENV_NS_PER_MS));
    return answer;
}

static json_t *token(const struct hosted_lock *hosted) {
    json_t *answer = answer_make(hosted->token ? OUTCOME_OK : OUTCOME_REFUSED, NULL);
    if (hosted->token) json_object_set_new(answer, "token", json_integer(hosted->token));
    return answer;
}

static json_t *call_release(struct hosted_lock *hosted) {
    hosted->token = 0;
    return answer_make(lock_release(&hosted->lock), NULL);
}

/* The place of a call's lock object: its own, if it is there already, or a new one; NULL: there are too many. */
static struct hosted_lock *place_of(struct call_thread *self, int number) {
    for (int each = 0; each < self->lock_count; each++)
        if (self->locks[each].number == number) return &self->locks[each];
    return self->lock_count < THREAD_LOCKS ? &self->locks[self->lock_count] : NULL;
}

/* The lock object of a call; NULL: there are too many. Its first acquire says what its lease is: one that was asked for
 * something else before that is made anew. */
static struct hosted_lock *lock_of(struct call_thread *self, const json_t *call, bool acquires) {
    const struct lock_site *site = self->site;
    const json_t *number = json_object_get(call, "lock"), *lease = json_object_get(call, "lease_ms");
    const char *resource = json_string_value(json_object_get(call, "resource"));
    int wanted = json_is_integer(number) ? (int)json_integer_value(number) : 1;
    struct hosted_lock *hosted = place_of(self, wanted);
    bool is_there = hosted && hosted < &self->locks[self->lock_count];
    if (!hosted || (is_there && (hosted->acquires || !acquires))) return hosted;
    bool given = acquires && json_is_integer(lease), fixed = acquires && lease ? given : site->fixed_lease;
    if (is_there) hosted_lock_end(hosted);
    else self->lock_count++;
    hosted_lock_make(hosted, site, resource ? resource : site->resource,
                     given ? json_integer_value(lease) : site->lease_ms, fixed);
    hosted->number = wanted;
    hosted->acquires = acquires;
    return hosted;
}

static json_t *answer(struct call_thread *self, const json_t *call) {
    const char *verb = json_string_value(json_object_get(call, "op"));
    struct hosted_lock *hosted = lock_of(self, call, strcmp(verb, "acquire") == 0);
    if (!hosted) return answer_make(OUTCOME_UNKNOWN, "there are too many lock objects");
    if (!hosted_lock_ready(hosted, self->site))
        return answer_make(OUTCOME_UNKNOWN, "a node did not answer while the lock was opened");
    if (strcmp(verb, "acquire") == 0) return call_acquire(hosted, call);
    if (strcmp(verb, "release") == 0) return call_release(hosted);
    if (strcmp(verb, "renew") == 0) return answer_make(lock_renew(&hosted->lock), NULL);
    if (strcmp(verb, "is_held") == 0) return answer_make(lock_is_held(&hosted->lock), NULL);
    if (strcmp(verb, "token") == 0) return token(hosted);
    return answer_make(OUTCOME_UNKNOWN, "there is no such question");
}

/* --- the thread --- */

/* The next call; NULL: none comes any more. */
static json_t *call_take(struct call_thread *self) {
    pthread_mutex_lock(&self->mutex);
    while (self->taken == self->asked && !self->ends) pthread_cond_wait(&self->news, &self->mutex);
    json_t *call = self->taken == self->asked ? NULL : self->calls[self->taken++ % CALLS_WAITING];
    pthread_mutex_unlock(&self->mutex);
    return call;
}

static void *thread_main(void *argument) {
    struct call_thread *self = argument;
    for (json_t *call; (call = call_take(self));) {
        json_t *answered = answer(self, call);
        pthread_mutex_lock(&self->mutex);
        self->answered++;
        pthread_mutex_unlock(&self->mutex);
        answer_write(call, answered);
        json_decref(call);
    }
    for (int each = 0; each < self->lock_count; each++) hosted_lock_end(&self->locks[each]);
    return NULL;
}

bool call_thread_begin(struct call_thread *self, const struct lock_site *site) {
    memset(self, 0, sizeof *self);
    self->site = site;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->news, NULL);
    return pthread_create(&self->thread, NULL, thread_main, self) == 0;
}

bool call_thread_give(struct call_thread *self, json_t *call) {
    pthread_mutex_lock(&self->mutex);
    bool has_room = self->asked - self->answered < CALLS_WAITING;
    if (has_room) self->calls[self->asked++ % CALLS_WAITING] = call;
    pthread_cond_signal(&self->news);
    pthread_mutex_unlock(&self->mutex);
    return has_room;
}

bool call_thread_is_busy(struct call_thread *self) {
    pthread_mutex_lock(&self->mutex);
    bool is_busy = self->asked != self->answered;
    pthread_mutex_unlock(&self->mutex);
    return is_busy;
}

void call_thread_end(struct call_thread *self) {
    pthread_mutex_lock(&self->mutex);
    self->ends = true;
    pthread_cond_signal(&self->news);
    pthread_mutex_unlock(&self->mutex);
    pthread_join(self->thread, NULL);
    pthread_mutex_destroy(&self->mutex);
    pthread_cond_destroy(&self->news);
}
