/* A checker answers one question about a history: streaming, one record at a time in index order, with memory that
 * grows with actors and locks, not with records. One C file each, a struct checker; adding one: copy fencing.c and add
 * a line to table.c. Checkers know the history and nothing else: no server, no lock code.
 *
 * Definitions (closed or open ends, which stamps) stand in docs/verdicts.md. */
#ifndef LOCKSTORM_CHECKERS_CHECKER_H
#define LOCKSTORM_CHECKERS_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/history.h"

/* Zero is inconclusive: what was not decided is never taken for a pass. */
enum verdict_status { VERDICT_INCONCLUSIVE = 0, VERDICT_HOLDS = 1, VERDICT_VIOLATED = 2 };

enum { EVIDENCE_RECORDS = 4, EVIDENCE_KEPT = 8, VERDICT_PARTS = 4 };

struct evidence {
    uint64_t records[EVIDENCE_RECORDS]; /* indices, the smallest set that shows it */
    int record_count;
    char text[320];
};

/* Violations of one sort: "stale write", 2. */
struct verdict_part {
    const char *name; /* in the singular */
    uint64_t count;
};

struct verdict {
    enum verdict_status status;
    bool applies;                             /* false: the question does not arise (no tokens in this lock) */
    uint64_t count;                           /* violations */
    uint64_t stopped;                         /* what the store refused instead */
    struct verdict_part parts[VERDICT_PARTS]; /* the violations by sort, if there are several sorts */
    char reason[160];                         /* of an inconclusive */
    struct evidence evidence[EVIDENCE_KEPT];  /* of the first violations */
    int evidence_count;
};

struct check {
    struct history_reader *reader; /* for the names in evidence */
};

struct checker {
    const char *property; /* "mutual_exclusion" */
    const char *title;    /* "mutual exclusion" */
    const char *question;
    void *(*open)(const struct check *check);
    void (*record)(void *state, const struct history_record *record, uint64_t index);
    void (*finish)(void *state, struct verdict *verdict); /* frees the state */
};

/* All checkers in the order in which a verdict states them; ends with NULL. */
extern const struct checker *const CHECKER_TABLE[];

/* The bits of HISTORY_LOCK_OPEN that checkers look at; the same numbers as in harness/locks/lock.h. */
enum { CHECK_TRAIT_TOKEN = 2, CHECK_TRAIT_REENTRANT = 4 };

/* Keeps the first EVIDENCE_KEPT; the text is composed by the caller into the returned slot, NULL when full. */
struct evidence *verdict_evidence(struct verdict *verdict, const uint64_t *records, int count);

/* The name at an index, escaped for a terminal and cut, in a buffer of `size` bytes; returns the buffer. */
const char *check_name(const struct check *check, uint32_t index, char *buffer, size_t size);

/* A duration for a reader: "30.205 s", "12 us". Returns the buffer. */
const char *check_duration(int64_t duration_ns, char *buffer, size_t size);

/* A growing array of `size`-byte entries that each begin with a uint32_t key; few keys, found by looking. */
struct check_table {
    void *entries;
    size_t size, count, room;
};
/* Adds an entry, zeroed but for its key, which may be there already. Valid until the next call that adds. */
void *check_table_add(struct check_table *table, uint32_t key);
/* The entry of a key; added if there is none. */
void *check_table_get(struct check_table *table, uint32_t key);
void *check_table_find(const struct check_table *table, uint32_t key);
void check_table_remove(struct check_table *table, void *entry);
void check_table_free(struct check_table *table);

#endif
