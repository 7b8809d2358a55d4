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

/* Converts lines into the binary form. `out` is seekable and empty; afterwards it is at its end. False with *error,
 * which names the line. A line without "index" has the next one; a name that no text has defined is defined where it
 * first appears. So a history that is written by hand needs neither. */
bool history_json_read(FILE *in, FILE *out, struct history_error *error);

/* A reader on what lines say, converted into a temporary file: a history of any length. NULL with *error: `path`,
 * `refused`, and the line. `goes_on` is asked after each line, unless it is NULL; when it returns false, so does this.
 */
typedef bool history_json_goes_on(void *context);
struct history_reader *history_json_open(FILE *lines, const char *path, const char *refused,
                                         history_json_goes_on *goes_on, void *context, struct history_error *error);
