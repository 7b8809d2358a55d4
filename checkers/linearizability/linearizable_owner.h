/* owner-mutex, reentrant-mutex, fenced-mutex: locks that only their owner may release. linearizable_owner.c has the
 * argument. */
#ifndef LOCKSTORM_CHECKERS_LINEARIZABLE_OWNER_H
#define LOCKSTORM_CHECKERS_LINEARIZABLE_OWNER_H

#include "checkers/linearizability/linearizable.h"

linearizable_algorithm linearizable_owner;

#endif
