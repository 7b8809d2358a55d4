/* Operations in the formats that other tools read: Jepsen's EDN, and JSON lines for a test with Porcupine.
 * docs/linearizable.md defines both. */
#pragma once

#include <stdio.h>

#include "checkers/linearizability/operations.h"

enum write_format { WRITE_EDN, WRITE_PORCUPINE };

/* Why the operations cannot be written; NULL: they can. */
const char *operations_unwritable(const struct operation_source *source);
/* False: `out` did not take them. */
bool operations_write(const struct operation_source *source, enum write_format format, FILE *out);
