/* The models by name, and which algorithm decides each. Every algorithm is exact; why it is sound stands at the head of
 * its file and, with measured figures, in docs/linearizable.md:
 *
 *   mutex, semaphore                              linearizable_count.c      a greedy choice, O(1) per event
 *   owner-mutex, reentrant-mutex, fenced-mutex    linearizable_owner.c      a small set of configurations
 *   register                                      linearizable_register.c   a search with memory, exponential at worst
 */
#pragma once

#include "checkers/linearizability/linearizable.h"

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
