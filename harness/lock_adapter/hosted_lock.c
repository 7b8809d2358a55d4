#include "harness/lock_adapter/hosted_lock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { REPLY_LIMIT_MS = 1000 };

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

void hosted_lock_make(struct hosted_lock *hosted, const struct lock_site *site, const char *resource, int64_t lease_ms,
                      bool fixed_lease) {
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

bool hosted_lock_ready(struct hosted_lock *hosted, const struct lock_site *site) {
    if (hosted->opened) return true;
    hosted->opened = lock_open(&hosted->lock, site->type, hosted->env, &hosted->options) == OUTCOME_OK;
    if (!hosted->opened) lock_close(&hosted->lock);
    return hosted->opened;
}

void hosted_lock_end(struct hosted_lock *hosted) {
    if (hosted->opened) lock_close(&hosted->lock);
    env_live_close(hosted->env);
    close(hosted->turn_fd);
    close(hosted->watchdog_fd);
    close(hosted->yield_fd);
    free(hosted->resource);
    atomic_store(&places[hosted->place], false);
}
