/* Values by their names, at most so many: the oldest goes when there are too many. */
#pragma once

#include "faults/proxy/resp.h"

struct text_entry {
    struct text_entry *next;          /* in its slot */
    struct text_entry *older, *newer; /* by when they were put */
    void *value;                      /* owned */
    uint64_t hash;
    size_t length;
    char name[]; /* with a 0 behind it */
};

struct text_table {
    void (*drop)(void *value); /* frees a value; NULL: free() */
    size_t most, count;
    struct text_entry **slots; /* owned */
    size_t slot_count;
    struct text_entry *oldest, *newest;
};

void text_table_begin(struct text_table *table, size_t most, void (*drop)(void *value));
/* Drops everything; the table can be used again. */
void text_table_clear(struct text_table *table);
/* NULL: there is no such name. */
void *text_table_find(const struct text_table *table, struct span name);
/* Takes the value, in the place of one of the same name. */
void text_table_put(struct text_table *table, struct span name, void *value);
void text_table_remove(struct text_table *table, struct span name);

/* FNV-1a, 64 bits. */
uint64_t text_hash(struct span text);
