/* register: read, write, compare-and-set. linearizable_register.c has the argument. */
#ifndef LOCKSTORM_CHECKERS_LINEARIZABLE_REGISTER_H
#define LOCKSTORM_CHECKERS_LINEARIZABLE_REGISTER_H

#include "checkers/linearizability/linearizable.h"

linearizable_algorithm linearizable_register;

#endif
