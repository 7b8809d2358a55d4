#include "checkers/checker.h"

extern const struct checker CHECKER_MUTUAL_EXCLUSION, CHECKER_INTEGRITY, CHECKER_FENCING;

const struct checker *const CHECKER_TABLE[] = {
    &CHECKER_MUTUAL_EXCLUSION,
    &CHECKER_INTEGRITY,
    &CHECKER_FENCING,
    NULL,
};
