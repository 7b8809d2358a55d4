/* Asking independent nodes the same thing, one after another, and counting: none of them knows of the others. */
#ifndef LOCKSTORM_LOCKS_MAJORITY_H
#define LOCKSTORM_LOCKS_MAJORITY_H

#include "harness/locks/lock.h"

struct tally {
    int nodes;
    int done, refused, silent; /* by their outcomes: OK, REFUSED, UNKNOWN */
};

/* Asks every node of env, also after a majority has answered; each may take limit_ms. */
struct tally majority_ask(struct lock *lock, struct env *env, int64_t limit_ms,
                          enum outcome (*question)(struct lock *lock, struct env *env, int node, int64_t limit_ms));

/* OK: a majority did it. UNKNOWN: it may have, with those that gave no answer. REFUSED: it did not. */
enum outcome majority_outcome(const struct tally *tally);

#endif
