#include "checkers/formats/recorded.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "checkers/linearizability/models.h"

enum { NAME_BYTES = 256 };

void recorded_begin(struct recorded *recorded, struct operation_source *source, enum model model) {
    *recorded = (struct recorded){.source = source, .model = model};
}

/* --- names --- */

static bool name_begin(struct recorded *recorded, const struct history_record *record, uint64_t index) {
    struct limits *limits = &recorded->source->limits;
    if (!limits_grow(limits, (void **)&recorded->names, sizeof *recorded->names, recorded->name_count,
                     &recorded->name_room))
        return false;
    char *bytes = limits_resize(limits, NULL, 0, NAME_BYTES);
    if (!bytes) return false;
    bytes[0] = '\0';
    recorded->names[recorded->name_count++] =
        (struct recorded_name){.index = (uint32_t)index, .length = (uint32_t)record->value, .bytes = bytes};
    return true;
}

/* Adds a chunk to the text that began last. */
static void name_more(struct recorded *recorded, const struct history_record *record) {
    struct recorded_name *name = recorded->name_count ? &recorded->names[recorded->name_count - 1] : NULL;
    const char *chunk = (const char *)record + (HISTORY_RECORD_SIZE - HISTORY_TEXT_CHUNK);
    for (size_t each = 0; name && each < HISTORY_TEXT_CHUNK && name->have < name->length; each++, name->have++) {
        unsigned char byte = (unsigned char)chunk[each];
        size_t used = strlen(name->bytes);
        if (used + 5 < NAME_BYTES)
            snprintf(name->bytes + used, NAME_BYTES - used, byte < 128 && isprint(byte) ? "%c" : "\\x%02x", byte);
    }
}

const char *recorded_name(const struct recorded *recorded, int64_t index, char *buffer, size_t size) {
    for (size_t low = 0, high = recorded->name_count; low < high;) {
        size_t middle = (low + high) / 2;
        const struct recorded_name *name = &recorded->names[middle];
        if (name->index == index) {
            snprintf(buffer, size, "%s", name->bytes);
            return buffer;
        }
        if (name->index < index) low = middle + 1;
        else high = middle;
    }
    snprintf(buffer, size, "#%lld", (long long)index);
    return buffer;
}

/* --- events --- */

/* False: the record is not of an operation that the model knows. */
static bool event_of(const struct recorded *recorded, const struct history_record *record,
                     struct operation_event *event) {
    static const enum operation_kind kinds[] = {OPERATION_ACQUIRE, OPERATION_RENEW, OPERATION_RELEASE, OPERATION_READ,
                                                OPERATION_WRITE};
    if (record->kind < HISTORY_ACQUIRE_INVOKE || record->kind > HISTORY_WRITE_RETURN) return false;
    event->kind = kinds[(record->kind - HISTORY_ACQUIRE_INVOKE) / 2];
    bool invoked = (record->kind - HISTORY_ACQUIRE_INVOKE) % 2 == 0, lock = event->kind < OPERATION_READ;
    if (!model_knows(recorded->model, event->kind)) return false;
    if (!lock && record->object != HISTORY_OBJECT_REGISTER) return false;
    event->type = invoked                              ? EVENT_INVOKE
                  : record->outcome == OUTCOME_OK      ? EVENT_OK
                  : record->outcome == OUTCOME_REFUSED ? EVENT_FAIL
                                                       : EVENT_UNKNOWN;
    event->value = event->from = OPERATION_NIL;
    if (event->kind == OPERATION_ACQUIRE && record->token != 0) event->value = record->token;
    if (!lock) event->value = record->value;
    event->has_value =
        event->kind == OPERATION_ACQUIRE || event->kind == OPERATION_READ ? event->type == EVENT_OK : false;
    return true;
}

static void recorded_doubt(struct operation_source *source, uint64_t index, const char *what) {
    if (source->fault[0]) return;
    snprintf(source->fault, sizeof source->fault, "record %llu: %s", (unsigned long long)index, what);
}

static bool operation_take(struct recorded *recorded, const struct history_record *record, uint64_t index) {
    struct operation_event event = {.process = record->actor, .at = (uint32_t)index};
    enum operation_kind open;
    char name[NAME_BYTES];
    if (!event_of(recorded, record, &event)) return true;
    bool lock = event.kind < OPERATION_READ;
    event.object =
        lock ? recorded_name(recorded, record->name, name, sizeof name) : history_object_name(record->object);
    /* An actor that was killed may restart under its name: its operation under way stays open. */
    struct operations *operations = &recorded->source->operations;
    bool busy = operations_under_way(operations, event.process, &open);
    if (event.type == EVENT_INVOKE && busy) operations_end_process(operations, event.process);
    enum take_result taken = operations_take(operations, &event);
    if (taken == TAKE_REFUSED) recorded_doubt(recorded->source, index, operations->fault);
    return taken != TAKE_FULL;
}

bool recorded_take(struct recorded *recorded, const struct history_record *record, uint64_t index) {
    if (record->checksum == 0) {
        recorded->source->torn++;
        return true;
    }
    if (record->kind == HISTORY_TEXT_MORE) {
        name_more(recorded, record);
        return true;
    }
    if (record->kind == HISTORY_TEXT) return name_begin(recorded, record, index);
    if (record->kind == HISTORY_ACTOR_EXIT) {
        operations_end_process(&recorded->source->operations, record->name);
        return true;
    }
    return operation_take(recorded, record, index);
}

void recorded_end(struct recorded *recorded) {
    struct limits *limits = &recorded->source->limits;
    for (size_t each = 0; each < recorded->name_count; each++)
        limits_free(limits, recorded->names[each].bytes, NAME_BYTES);
    limits_free(limits, recorded->names, recorded->name_room * sizeof *recorded->names);
}
