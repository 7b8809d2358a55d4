/* What the exit status of `check` and `linearize` says. */
#ifndef LOCKSTORM_CHECKERS_EXIT_STATUS_H
#define LOCKSTORM_CHECKERS_EXIT_STATUS_H

enum { EXIT_HOLDS = 0, EXIT_VIOLATED = 1, EXIT_BAD = 2, EXIT_INCONCLUSIVE = 3 };

#endif
