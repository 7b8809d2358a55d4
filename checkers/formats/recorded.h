/* The operations in a history of lockstorm's own, record by record: acquire, renew and release of each lock, or read
 * and write of each register. The index of a record is the order and what evidence names. */
#pragma once

#include "checkers/linearizability/linearizable.h"
#include "checkers/linearizability/operation_source.h"
#include "harness/history/history.h"

/* A text of the history, from which names are put together. */
struct recorded_name {
    uint32_t index; /* of its record */
    uint32_t length, have;
    char *bytes; /* escaped for a terminal, and cut */
};

struct recorded {
    struct operation_source *source; /* gets the operations, what is missing, and what is wrong */
    enum model model;
    struct recorded_name *names;
    size_t name_count, name_room;
};

void recorded_begin(struct recorded *recorded, struct operation_source *source, enum model model);
/* False: a limit was reached. A record with a checksum of 0 is a torn slot. */
bool recorded_take(struct recorded *recorded, const struct history_record *record, uint64_t index);
/* The name at an index, in a buffer of `size` bytes; returns the buffer. */
const char *recorded_name(const struct recorded *recorded, int64_t index, char *buffer, size_t size);
void recorded_end(struct recorded *recorded);
