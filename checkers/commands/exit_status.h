/* What the exit status of `check` and `linearize` says. */
#pragma once

enum { EXIT_HOLDS = 0, EXIT_VIOLATED = 1, EXIT_BAD = 2, EXIT_INCONCLUSIVE = 3 };
