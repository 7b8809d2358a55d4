/* The operations in a history of lockstorm's own: acquire, renew and release of each lock, or read and write of each
 * register. The index of a record is the order and what evidence names. */
#pragma once

#include "checkers/linearizability/linearizable.h"
#include "harness/history/history.h"

/* Fills the source with the operations of a model, what is missing, and what is wrong, until a limit is reached. False:
 * a record is damaged, at history_reader_index. */
bool recorded_read(struct history_reader *reader, enum model model, struct operation_source *source);
