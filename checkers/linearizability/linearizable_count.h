/* mutex, semaphore: locks that anyone may release. linearizable_count.c has the argument. */
#ifndef LOCKSTORM_CHECKERS_LINEARIZABLE_COUNT_H
#define LOCKSTORM_CHECKERS_LINEARIZABLE_COUNT_H

#include "checkers/linearizability/linearizable.h"

linearizable_algorithm linearizable_count;

#endif
