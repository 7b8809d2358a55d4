#include "checkers/engine/checker.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The evidence of a new cause, without its text; NULL: the cause is known, or there is no room. */
static struct evidence *evidence_add(struct verdict *verdict, const struct event *event,
                                     const struct violation *violation) {
    uint64_t times = violation->times ? violation->times : 1;
    assert(violation->sort < VERDICT_PARTS);
    verdict->count += times;
    verdict->sorts[violation->sort] += times;
    for (int each = 0; each < verdict->evidence_count; each++) {
        struct evidence *cause = &verdict->evidence[each];
        if (cause->sort != violation->sort || cause->who != violation->who || cause->whom != violation->whom) continue;
        cause->count += times;
        return NULL;
    }
    if (verdict->evidence_count == EVIDENCE_KEPT) return NULL;
    struct evidence *evidence = &verdict->evidence[verdict->evidence_count++];
    *evidence =
        (struct evidence){.sort = violation->sort, .who = violation->who, .whom = violation->whom, .count = times};
    for (int each = 0; each < EVIDENCE_RECORDS; each++)
        if (violation->records[each]) evidence->records[evidence->record_count++] = violation->records[each];
    assert(!event || evidence->record_count < EVIDENCE_RECORDS);
    if (event) evidence->records[evidence->record_count++] = event->index;
    return evidence;
}

void verdict_decide(struct verdict *verdict, bool seen, const char *reason) {
    verdict->status = verdict->count ? VERDICT_VIOLATED : seen ? VERDICT_HOLDS : VERDICT_INCONCLUSIVE;
    if (verdict->status == VERDICT_INCONCLUSIVE) snprintf(verdict->reason, sizeof verdict->reason, "%s", reason);
}

struct history_record check_record_at(const struct check *check, uint64_t index) {
    struct history_record record = {0};
    if (index && !history_reader_at(check->reader, index, &record)) record = (struct history_record){0};
    return record;
}

static const char *check_duration(int64_t duration_ns, char *buffer, size_t size) {
    if (duration_ns == 0) snprintf(buffer, size, "0 s");
    else if (duration_ns >= 1000000000) snprintf(buffer, size, "%.3f s", (double)duration_ns / 1e9);
    else if (duration_ns >= 1000000) snprintf(buffer, size, "%.3f ms", (double)duration_ns / 1e6);
    else snprintf(buffer, size, "%.3f us", (double)duration_ns / 1e3);
    return buffer;
}

static const char *check_when(const struct check *check, int64_t mono_ns, char *buffer, size_t size) {
    char duration[32];
    snprintf(buffer, size, "at %s", check_duration(elapsed_ns(check->began_ns, mono_ns), duration, sizeof duration));
    return buffer;
}

const char *check_grant(const struct check *check, uint64_t index, char *buffer, size_t size) {
    char name[64], when[40], token[40] = "";
    struct history_record grant = check_record_at(check, index);
    if (grant.token) snprintf(token, sizeof token, "token %lld, ", (long long)grant.token);
    snprintf(buffer, size, "%s (%sgranted %s)", history_name(check->reader, grant.actor, name, sizeof name), token,
             check_when(check, grant.mono_ns, when, sizeof when));
    return buffer;
}

/* What %p and a letter stand for. A name is cut to 63 bytes, so that an odd one leaves room for the sentence. */
static const char *described(const struct check *check, char what, const void *value, char *buffer, size_t size) {
    if (!value) return "";
    switch (what) {
    case 'N': return history_name(check->reader, *(const uint32_t *)value, buffer, size < 64 ? size : 64);
    case 'T': return check_when(check, *(const int64_t *)value, buffer, size);
    case 'D': return check_duration(*(const int64_t *)value, buffer, size);
    default: assert(what == 'G'); return check_grant(check, *(const uint64_t *)value, buffer, size);
    }
}

void violate(struct checking *my, const struct event *event, const struct violation *violation, const char *format,
             ...) {
    struct evidence *evidence = evidence_add(&my->verdict, event, violation);
    char piece[160];
    size_t used = 0;
    va_list values;
    va_start(values, format);
    for (const char *at = format; evidence && *at && used + 1 < sizeof evidence->text; at++) {
        const char *shown = piece;
        if (*at != '%') {
            snprintf(piece, sizeof piece, "%c", *at);
        } else if (*++at == 's') {
            shown = va_arg(values, const char *);
        } else if (*at == 'p') {
            shown = described(my->check, *++at, va_arg(values, const void *), piece, sizeof piece);
        } else {
            assert(strncmp(at, "lld", 3) == 0);
            at += 2;
            snprintf(piece, sizeof piece, "%lld", va_arg(values, long long));
        }
        used += (size_t)snprintf(evidence->text + used, sizeof evidence->text - used, "%s", shown);
    }
    va_end(values);
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
