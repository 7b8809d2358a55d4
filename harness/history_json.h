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

/* Reads lines into an image of a history in memory, for history_reader_memory or to be written to a file. The caller
 * frees *image. False with *error, which names the line. A line without "index" comes next; a name that was not defined
 * by a text is defined where it first appears, so a history written by hand needs neither. */
bool history_json_read(FILE *in, void **image, size_t *bytes, struct history_error *error);

/* The same one record after the other, none of which is kept: for long histories. A torn slot is handed over with a
 * check word of 0. Ends early, and returns false with an empty *error, when `take` returns false. */
typedef bool history_json_take(void *context, const struct history_record *record, uint64_t index);
bool history_json_each(FILE *in, history_json_take *take, void *context, uint64_t *dropped,
                       struct history_error *error);

#endif
