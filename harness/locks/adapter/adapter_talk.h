/* Requests to the program that a client hosts, and its answers (docs/adapters.md). */
#pragma once

#include <jansson.h>

#include "harness/locks/common/lock.h"

/* The state of such a lock. */
struct adapter {
    json_int_t id; /* of the last request */
    bool renews, answers_is_held;
};

struct adapter_answer {
    enum outcome outcome;
    json_t *body; /* the caller decrefs it; NULL: none came */
};

/* In reply limits of a node. */
int64_t adapter_limit_ms(const struct lock *lock, int limits);

/* Sends a request with these further keys (`more`, which it takes, or NULL) and waits for the answer. Answers to
 * earlier requests, which were given up, are dropped. Does not return when a line is no answer: env_give_up. */
struct adapter_answer adapter_ask(struct lock *lock, const char *verb, json_t *more, int64_t limit_ms);

/* The same for an answer that may only have the common keys, so that a misspelt key is noticed. */
struct adapter_answer adapter_ask_strictly(struct lock *lock, const char *verb, json_t *more, int64_t limit_ms);

/* For a line that is no answer: ends the client, so that the author of the adapter learns of it. */
_Noreturn void adapter_give_up(struct lock *lock, const char *why, const char *line);
