/* Operations, and what is known of the input that they come from. A reader fills it (checkers/formats); judging,
 * evidence and writing use it and know no format. */
#pragma once

#include "checkers/linearizability/operations.h"

struct operation_source {
    struct limits limits;
    struct operations operations;
    uint64_t torn, dropped; /* records that the input reports as missing */
    char fault[200];        /* why the operations cannot be judged; empty: they can */
    int64_t initial;        /* what a register holds at the beginning, unless the user says */
    const char *event_noun; /* what the input calls an event: "record" or "event" */
    /* The name of a process, by the number that an operation has of it: "client-1", "process 3". Returns the buffer. */
    const char *(*process_name)(const struct operation_source *source, uint32_t process, char *buffer, size_t size);
};
