#include "harness/locks/common/majority.h"

struct tally majority_ask(struct lock *lock, struct env *env, int64_t limit_ms,
                          enum outcome (*question)(struct lock *lock, struct env *env, int node, int64_t limit_ms)) {
    struct tally tally = {.nodes = env_nodes(env)};
    for (int node = 0; node < tally.nodes; node++) {
        enum outcome outcome = question(lock, env, node, limit_ms);
        tally.done += outcome == OUTCOME_OK;
        tally.refused += outcome == OUTCOME_REFUSED;
        tally.silent += outcome == OUTCOME_UNKNOWN;
        tally.answers = env_answers_add(tally.answers, outcome);
    }
    return tally;
}

struct tally majority_ask_for(enum env_asked asked, struct lock *lock, struct env *env, int64_t limit_ms,
                              enum outcome (*question)(struct lock *lock, struct env *env, int node,
                                                       int64_t limit_ms)) {
    struct tally tally = majority_ask(lock, env, limit_ms, question);
    env_tell_answers(env, (int)asked, tally.answers, majority_outcome(&tally));
    return tally;
}

enum outcome majority_outcome(const struct tally *tally) {
    int majority = tally->nodes / 2 + 1;
    if (tally->done >= majority) return OUTCOME_OK;
    return tally->done + tally->silent >= majority ? OUTCOME_UNKNOWN : OUTCOME_REFUSED;
}
