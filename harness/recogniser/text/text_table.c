#include "harness/recogniser/text/text_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 16 };

uint64_t text_hash(struct span text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t at = 0; at < text.length; at++) hash = (hash ^ (unsigned char)text.bytes[at]) * 0x100000001b3u;
    return hash;
}

void text_table_begin(struct text_table *table, size_t most, void (*drop)(void *value)) {
    assert(most > 0);
    *table = (struct text_table){.most = most, .drop = drop ? drop : free};
}

static struct text_entry **text_table_place(const struct text_table *table, struct span name, uint64_t hash) {
    struct text_entry **place = &table->slots[hash & (table->slot_count - 1)];
    while (*place && ((*place)->hash != hash || (*place)->length != name.length ||
                      memcmp((*place)->name, name.bytes, name.length) != 0))
        place = &(*place)->next;
    return place;
}

void *text_table_find(const struct text_table *table, struct span name) {
    if (table->count == 0) return NULL;
    const struct text_entry *entry = *text_table_place(table, name, text_hash(name));
    return entry ? entry->value : NULL;
}

static void text_table_grow(struct text_table *table) {
    size_t count = table->slot_count ? 2 * table->slot_count : FIRST_SLOTS;
    struct text_entry **slots = calloc(count, sizeof *slots);
    if (!slots) abort();
    for (struct text_entry *entry = table->oldest; entry; entry = entry->newer) {
        entry->next = slots[entry->hash & (count - 1)];
        slots[entry->hash & (count - 1)] = entry;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = count;
}

static void text_entry_remove(struct text_table *table, struct text_entry **place) {
    struct text_entry *entry = *place;
    *place = entry->next;
    *(entry->older ? &entry->older->newer : &table->oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &table->newest) = entry->older;
    table->count--;
    table->drop(entry->value);
    free(entry);
}

void text_table_put(struct text_table *table, struct span name, void *value) {
    text_table_remove(table, name);
    if (table->count == table->most) {
        struct text_entry *oldest = table->oldest;
        text_entry_remove(table, text_table_place(table, (struct span){oldest->name, oldest->length}, oldest->hash));
    }
    if (table->count >= table->slot_count) text_table_grow(table);
    struct text_entry *entry = malloc(sizeof *entry + name.length + 1);
    if (!entry) abort();
    *entry = (struct text_entry){.value = value, .hash = text_hash(name), .length = name.length};
    memcpy(entry->name, name.bytes, name.length);
    entry->name[name.length] = '\0';
    struct text_entry **slot = &table->slots[entry->hash & (table->slot_count - 1)];
    entry->next = *slot;
    *slot = entry;
    entry->older = table->newest;
    *(table->newest ? &table->newest->newer : &table->oldest) = entry;
    table->newest = entry;
    table->count++;
}

void text_table_remove(struct text_table *table, struct span name) {
    if (table->count == 0) return;
    struct text_entry **place = text_table_place(table, name, text_hash(name));
    if (*place) text_entry_remove(table, place);
}

void text_table_clear(struct text_table *table) {
    for (struct text_entry *entry = table->oldest, *newer; entry; entry = newer) {
        newer = entry->newer;
        table->drop(entry->value);
        free(entry);
    }
    free(table->slots);
    *table = (struct text_table){.most = table->most, .drop = table->drop};
}
