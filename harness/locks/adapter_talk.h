/* Questions to the program that a client hosts, and its answers (docs/adapters.md). */
#ifndef LOCKSTORM_LOCKS_ADAPTER_TALK_H
#define LOCKSTORM_LOCKS_ADAPTER_TALK_H

#include <jansson.h>

#include "harness/locks/lock.h"

/* The state of a lock that is hosted so. */
struct adapter {
    json_int_t id; /* of the last question */
    bool renews, tells;
};

struct adapter_answer {
    enum outcome outcome;
    json_t *body; /* the caller gives it back; NULL: none came */
};

/* So many times what a client waits for an ordinary answer of a node. */
int64_t adapter_limit_ms(const struct lock *lock, int limits);

/* Asks, with what the question holds besides (`more`, which it takes, or NULL), and waits for the answer. Answers to
 * earlier questions, for which nobody waits any more, are dropped. Does not return when what comes is no answer. */
struct adapter_answer adapter_ask(struct lock *lock, const char *verb, json_t *more, int64_t limit_ms);

/* The same for an answer that has no keys of its own, as a hello has: what is misspelt would go unnoticed. */
struct adapter_answer adapter_ask_strictly(struct lock *lock, const char *verb, json_t *more, int64_t limit_ms);

/* For an answer that is none: whoever wrote the adapter has to know, and what came after would mean nothing. */
_Noreturn void adapter_give_up(struct lock *lock, const char *why, const char *line);

#endif
