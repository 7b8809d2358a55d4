/* Somebody who appends to the history: stamps its records with the trial's time and its own idea of the wall clock. */
#ifndef LOCKSTORM_ACTOR_H
#define LOCKSTORM_ACTOR_H

#include "harness/stage.h"

struct actor {
    struct history *history;
    struct stage *stage;
    uint32_t id;                     /* index of its name */
    const struct strand_place *host; /* whose wall clock it reads; NULL: one without faults */
};

/* Fills actor, mono_ns and wall_ns, and appends. Returns the index, HISTORY_FULL if there is no room. */
static inline uint64_t actor_append(const struct actor *actor, struct history_record record) {
    record.actor = actor->id;
    record.mono_ns = stage_mono_ns(actor->stage);
    record.wall_ns = stage_host_wall_ns(actor->stage, actor->host);
    return history_append(actor->history, &record);
}

#endif
