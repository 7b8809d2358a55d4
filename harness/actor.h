/* Somebody who appends to the history: stamps its records with the trial's time and its own idea of the wall clock. */
#ifndef LOCKSTORM_ACTOR_H
#define LOCKSTORM_ACTOR_H

#include "harness/stage.h"

struct actor {
    struct history *history;
    struct stage *stage;
    uint32_t id;               /* index of its name */
    struct strand_place *host; /* whose wall clock it reads, and who tells that it appends; NULL: no client */
};

/* Fills actor, mono_ns and wall_ns, and appends. Returns the index, HISTORY_FULL if there is no room. A client that is
 * stopped while it says that it appends may have a record half written (conductor_stop_between_records). */
static inline uint64_t actor_append(const struct actor *actor, struct history_record record) {
    record.actor = actor->id;
    record.mono_ns = stage_mono_ns(actor->stage);
    record.wall_ns = stage_host_wall_ns(actor->stage, actor->host);
    if (actor->host) atomic_fetch_add_explicit(&actor->host->appends, 1, memory_order_acq_rel);
    uint64_t index = history_append(actor->history, &record);
    if (actor->host) atomic_fetch_sub_explicit(&actor->host->appends, 1, memory_order_acq_rel);
    return index;
}

#endif
