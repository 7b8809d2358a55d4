/* Linearizable: is there a moment within each operation, from its call to its return, such that the operations, done
 * one after the other at these moments, are ones that the model allows (Herlihy and Wing, "Linearizability", 1990)? An
 * operation of unknown outcome happens at any moment after its call, or never.
 *
 * The question by model, its answer, and what the algorithms share. Every algorithm is exact; why it is sound stands at
 * the head of its file and, with measured figures, in docs/linearizable.md:
 *
 *   mutex, semaphore                              linearizable_count.c      a greedy choice, O(1) per event
 *   owner-mutex, reentrant-mutex, fenced-mutex    linearizable_owner.c      a small set of configurations
 *   register                                      linearizable_register.c   a search with memory, exponential at worst
 */
#pragma once

#include "checkers/engine/checker.h"
#include "checkers/linearizability/operations.h"

/* What the state is, and which operations a state allows (docs/linearizable.md has it as formulas). */
enum model {
    MODEL_MUTEX,           /* held or not; anyone may release */
    MODEL_OWNER_MUTEX,     /* held by a process, and only that one may release */
    MODEL_REENTRANT_MUTEX, /* ... which may acquire again, and releases as often */
    MODEL_FENCED_MUTEX,    /* owner-mutex whose grants carry tokens, each larger than the one before */
    MODEL_SEMAPHORE,       /* several permits; anyone may give one back */
    MODEL_REGISTER,        /* read, write, cas, add */
    MODEL_COUNT
};

struct linearizable_settings {
    enum model model;
    int64_t permits; /* of a semaphore */
    int64_t initial; /* of a register; OPERATION_NIL: never written */
    bool leases;     /* of a lock that has an owner: a hold may end by itself once its grant was answered */
    bool keep_all;   /* for tests: owned locks are judged without dropping any configuration; exponential */
};

enum { BLOCKERS_KEPT = 4 };

struct linearizable_result {
    enum verdict_status status; /* inconclusive: a limit was reached, or `fault` says what is missing */
    uint32_t operation;         /* violated: what cannot be placed, an index of the object's list */
    uint32_t prefix;            /* violated: the position up to which it is not linearizable, while it is before */
    uint32_t blockers[BLOCKERS_KEPT]; /* operations in its way */
    int blocker_count;
    char why[240];           /* violated: in words, without names */
    char fault[160];         /* inconclusive: why the list cannot be judged by this model */
    bool inapplicable;       /* ... whatever the limits: it holds what the model does not know */
    uint64_t configurations; /* the most that stood side by side */
};

/* False: there is no model of the name. */
bool model_find(const char *name, enum model *model);
const char *model_name(enum model model);
/* Does a hold belong to the process that acquired it? */
bool model_is_owned(enum model model);
/* Does an operation of this kind belong to the model? */
bool model_knows(enum model model, enum operation_kind kind);

/* The verdict on one object, whose operations name processes below `processes`. */
void linearizable_decide(const struct concurrent_object *object, uint32_t processes,
                         const struct linearizable_settings *settings, struct limits *limits,
                         struct linearizable_result *result);

/* --- the verdict on a whole input: what its objects come to --- */

/* An object that is not linearizable, and why. */
struct linearizability_violation {
    const struct concurrent_object *object; /* the source's */
    struct linearizable_result result;
};

struct linearizability_verdict {
    enum verdict_status status;
    char reason[256];                                           /* inconclusive: why */
    uint64_t violated;                                          /* objects */
    struct linearizability_violation violations[EVIDENCE_KEPT]; /* of the first objects */
    int violation_count;
    uint64_t operations, unknown; /* that may have happened; of these, of unknown outcome */
    uint64_t configurations;      /* the most that stood side by side for any object */
};

/* Judges within the limits of the source. False: an object is not what the model is about, `verdict->reason` says why.
 */
bool linearizability_judge(struct operation_source *source, const struct linearizable_settings *settings,
                           struct linearizability_verdict *verdict);

/* --- what algorithms share --- */

/* The events of an object by position: which operation begins or ends there. */
struct timeline {
    const struct concurrent_object *object;
    uint32_t processes; /* operations name numbers below it */
    uint32_t *events;   /* operation * 2 + (it ends here); TIMELINE_NOTHING */
    uint32_t length;    /* positions 0 .. length - 1 */
    uint32_t prefix;    /* operations that end after this position are open, those that begin after it are not there */
};
#define TIMELINE_NOTHING UINT32_MAX

/* False: the limit forbids it. The caller ends it in any case, with the same limits. */
bool timeline_begin(struct timeline *timeline, const struct concurrent_object *object, uint32_t processes,
                    struct limits *limits);
void timeline_end(struct timeline *timeline, struct limits *limits);

/* How an operation counts in the prefix. */
enum standing { STANDS_NOT, STANDS_FREE, STANDS_FIRM };
static inline enum standing timeline_standing(const struct timeline *timeline, const struct operation *operation) {
    if (operation->outcome == OUTCOME_REFUSED || operation->call > timeline->prefix) return STANDS_NOT;
    return operation->outcome == OUTCOME_OK && operation->end <= timeline->prefix ? STANDS_FIRM : STANDS_FREE;
}

/* A violation at a position; adds blockers with linearizable_block. */
void linearizable_violate(struct linearizable_result *result, uint32_t operation, uint32_t position, const char *why);
void linearizable_block(struct linearizable_result *result, uint32_t operation);

/* Decides for one object. `result` holds, and stays so unless the algorithm finds a violation or cannot decide; it
 * returns early, and may leave anything in `result`, when a limit is reached. */
typedef void linearizable_algorithm(struct timeline *timeline, const struct linearizable_settings *settings,
                                    struct limits *limits, struct linearizable_result *result);
linearizable_algorithm linearizable_count, linearizable_owner, linearizable_register;
