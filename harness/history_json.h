/* JSON Lines form of a history, loss-free in both directions. docs/history.md defines it.
 *
 * The first line is {"history": "lockstorm", "version": 1, "time": ..., "seed": ...}; every further line is one record
 * with its index. Fields that are zero are left out. Names stand as strings where a string says which name is meant. */
#ifndef LOCKSTORM_HISTORY_JSON_H
#define LOCKSTORM_HISTORY_JSON_H

#include <stdio.h>

#include "harness/history.h"

/* Writes all records, with `follow` until the history has ended, each line flushed. False with *error on a damaged
 * record or a failed write. */
bool history_json_write(struct history_reader *reader, bool follow, FILE *out, struct history_error *error);

/* Hands over the records of lines one after the other, none of which is kept: for histories of any length. A torn slot
 * has a check word of 0. False with *error, which names the line; with an empty one when `take` returned false. A line
 * without "index" comes next; a name that was not defined by a text is defined where it first appears, so a history
 * written by hand needs neither. */
typedef bool history_json_take(void *context, const struct history_record *record, uint64_t index);
bool history_json_each(FILE *in, history_json_take *take, void *context, uint64_t *dropped,
                       struct history_error *error);

/* Turns lines into the binary form: `out` is seekable and empty, and stands at its end afterwards. False with *error.
 */
bool history_json_read(FILE *in, FILE *out, struct history_error *error);

#endif
