/* Lock, refresh and unlock with leases as JSON, as the Jepsen tests of Palantir's AtlasDB log them: an array of
 * objects, or one object after the other, with "type" (invoke, ok, fail, info), "f" (lock, refresh, unlock), "process"
 * and "value". The value of an invocation is the name of the lock; that of an answer is the token, "true" or "false",
 * and an empty one means no. Other keys are skipped, and so are objects whose process is not a number.
 * docs/linearizable.md says how they are judged. */
#pragma once

#include "checkers/formats/text.h"

enum parse_result atlas_read(struct text *text, struct operations *operations);
