/* A process that appends to the history. It stamps its records with the trial's time and its own host's wall clock. */
#pragma once

#include "harness/scheduler/shared_page.h"

struct actor {
    struct history *history;
    struct shared_page *page;
    uint32_t id;            /* index of its name */
    struct task_slot *host; /* its host's clocks, and the count of unfinished appends; NULL: no client */
};

/* Opens the files of both. False with a sentence in *error; `page` is then NULL. */
static inline bool actor_open(struct actor *actor, uint32_t id, const char *history, const char *page,
                              struct history_error *error) {
    *actor = (struct actor){.history = history_open(history, error), .id = id};
    if (actor->history) actor->page = shared_page_open(page, error);
    return actor->page;
}

static inline void actor_close(const struct actor *actor) {
    shared_page_close(actor->page);
    history_close(actor->history);
}

/* Fills actor, mono_ns and wall_ns, and appends. Returns the index, or HISTORY_FULL. A client that is stopped while
 * `appends` is not 0 may have a record half written (scheduler_stop_between_records). */
static inline uint64_t actor_append(const struct actor *actor, struct history_record record) {
    record.actor = actor->id;
    shared_page_stamp(actor->page, actor->host, &record.mono_ns, &record.wall_ns);
    if (actor->host) atomic_fetch_add_explicit(&actor->host->appends, 1, memory_order_acq_rel);
    uint64_t index = history_append(actor->history, &record);
    if (actor->host) atomic_fetch_sub_explicit(&actor->host->appends, 1, memory_order_acq_rel);
    return index;
}
