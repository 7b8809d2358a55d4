/* The three outcomes of every operation on a remote party. Zero is unknown, so that a forgotten assignment is never
 * taken for an answer. Unknown means that the operation may or may not have taken effect: a timeout, a lost connection,
 * a script that failed half-way. */
#pragma once

enum outcome {
    OUTCOME_UNKNOWN = 0,
    OUTCOME_OK = 1,
    OUTCOME_REFUSED = 2,
};
