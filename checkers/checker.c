#include "checkers/checker.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct evidence *verdict_evidence(struct verdict *verdict, const uint64_t *records, int count) {
    if (verdict->evidence_count == EVIDENCE_KEPT) return NULL;
    struct evidence *evidence = &verdict->evidence[verdict->evidence_count++];
    memcpy(evidence->records, records, (size_t)count * sizeof *records);
    evidence->record_count = count;
    return evidence;
}

const char *check_name(const struct check *check, uint32_t index, char *buffer, size_t size) {
    size_t length, used = 0;
    const char *text = index ? history_reader_text(check->reader, index, &length) : NULL;
    if (!text) {
        snprintf(buffer, size, "#%u", index);
        return buffer;
    }
    for (size_t each = 0; each < length && used + 5 < size; each++) {
        unsigned char byte = (unsigned char)text[each];
        used += (size_t)snprintf(buffer + used, size - used, byte < 128 && isprint(byte) ? "%c" : "\\x%02x", byte);
    }
    buffer[used] = '\0';
    return buffer;
}

const char *check_duration(int64_t duration_ns, char *buffer, size_t size) {
    if (duration_ns == 0) snprintf(buffer, size, "0 s");
    else if (duration_ns >= 1000000000) snprintf(buffer, size, "%.3f s", (double)duration_ns / 1e9);
    else if (duration_ns >= 1000000) snprintf(buffer, size, "%.3f ms", (double)duration_ns / 1e6);
    else snprintf(buffer, size, "%.3f us", (double)duration_ns / 1e3);
    return buffer;
}

void *check_table_find(const struct check_table *table, uint32_t key) {
    for (size_t each = 0; each < table->count; each++) {
        char *entry = (char *)table->entries + each * table->size;
        if (*(const uint32_t *)(const void *)entry == key) return entry;
    }
    return NULL;
}

void *check_table_add(struct check_table *table, uint32_t key) {
    if (table->count == table->room) {
        table->room = table->room ? table->room * 2 : 8;
        table->entries = realloc(table->entries, table->room * table->size);
        if (!table->entries) abort();
    }
    char *entry = (char *)table->entries + table->count++ * table->size;
    memset(entry, 0, table->size);
    memcpy(entry, &key, sizeof key);
    return entry;
}

void *check_table_get(struct check_table *table, uint32_t key) {
    void *found = check_table_find(table, key);
    return found ? found : check_table_add(table, key);
}

void check_table_remove(struct check_table *table, void *entry) {
    char *last = (char *)table->entries + --table->count * table->size;
    if (entry != last) memcpy(entry, last, table->size);
}

void check_table_free(struct check_table *table) {
    free(table->entries);
}
