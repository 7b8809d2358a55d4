/* Lock, refresh and unlock with leases as JSON, as the Jepsen tests of Palantir's AtlasDB log them: an array of
 * objects, or one object after the other, with "type" (invoke, ok, fail, info), "f" (lock, refresh, unlock), "process"
 * and "value" - on the way in the name of the lock, on the way out the token, "true" or "false"; an empty one says no.
 * Other keys are read over, and so are objects whose process is not a number. docs/linearizable.md says how they are
 * judged. */
#ifndef LOCKSTORM_CHECKERS_ATLAS_H
#define LOCKSTORM_CHECKERS_ATLAS_H

#include "checkers/text.h"

enum outside_result atlas_read(struct text *text, struct operations *operations);

#endif
