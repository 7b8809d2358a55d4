/* Sends the same request to independent nodes, one after another, and counts their answers. */
#pragma once

#include "harness/locks/common/lock.h"

struct tally {
    int nodes;
    int done, refused, silent; /* by their outcomes: OK, REFUSED, UNKNOWN */
    int64_t answers;           /* of each, by env_answers_add */
};

/* Asks every node of env, also after a majority has answered; each may take limit_ms. */
struct tally majority_ask(struct lock *lock, struct env *env, int64_t limit_ms,
                          enum outcome (*question)(struct lock *lock, struct env *env, int node, int64_t limit_ms));

/* The same, and tells the trial's story what each node answered (env_tell_answers). */
struct tally majority_ask_for(enum env_asked asked, struct lock *lock, struct env *env, int64_t limit_ms,
                              enum outcome (*question)(struct lock *lock, struct env *env, int node, int64_t limit_ms));

/* OK: a majority did it. UNKNOWN: with the nodes that did not answer a majority may have. REFUSED: no majority did. */
enum outcome majority_outcome(const struct tally *tally);
