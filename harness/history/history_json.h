/* JSON Lines form of a history, loss-free in both directions. docs/history.md defines it.
 *
 * The first line is {"history": "lockstorm", "version": 1, "time": ..., "seed": ...}; every further line is one record
 * with its index. Fields that are zero are left out. Names are strings where a string is unambiguous. */
#pragma once

#include <stdio.h>

#include "harness/history/history.h"

/* Writes all records, with `follow` until the history has ended, each line flushed. False with *error on a damaged
 * record or a failed write. */
bool history_json_write(struct history_reader *reader, bool follow, FILE *out, struct history_error *error);

/* Gives `take` the records of all lines one after the other and keeps none: for histories of any length. A torn slot
 * has a checksum of 0. False with *error, which names the line, or with an empty one when `take` returned false. A line
 * without "index" has the next one; a name that no text has defined is defined where it first appears. So a history
 * that is written by hand needs neither. */
typedef bool history_json_take(void *context, const struct history_record *record, uint64_t index);
bool history_json_each(FILE *in, history_json_take *take, void *context, uint64_t *dropped,
                       struct history_error *error);

/* Converts lines into the binary form. `out` is seekable and empty; afterwards it is at its end. False with *error. */
bool history_json_read(FILE *in, FILE *out, struct history_error *error);
