/* A file in any of the formats as operations. */
#pragma once

#include "checkers/linearizability/linearizable.h"
#include "harness/history/history.h"

enum file_format {
    FORMAT_ANY, /* by its first bytes */
    FORMAT_RECORDED,
    FORMAT_JSON_LINES,
    FORMAT_EDN,
    FORMAT_ATLAS,
};

struct read_settings {
    enum model model; /* which operations are read */
    struct policies policies;
    enum file_format format;
    uint64_t memory_bytes; /* 0: no limit */
    int64_t time_ns;       /* for reading and judging; 0: no limit */
};

struct operations_file {
    struct operation_source source; /* first: its functions find the file by it */
    struct history_reader *reader;  /* of a history of our own, for its names */
    enum file_format format;        /* as it was found to be */
};

/* False: the file is not what it should be, *error says why with the byte or line where there is one. A limit that was
 * reached is no error: source.limits has it. The caller ends it with operations_file_end in either case, and does not
 * move it before. */
bool operations_read(struct operations_file *operations, const char *path, const struct read_settings *settings,
                     struct history_error *error);
void operations_file_end(struct operations_file *operations);
