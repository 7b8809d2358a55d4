#include "checkers/formats/recorded.h"

#include <stdio.h>

enum { NAME_BYTES = 256 };

/* False: the record is not of an operation that the model knows. */
static bool event_of(enum model model, const struct history_record *record, struct operation_event *event) {
    static const enum operation_kind kinds[] = {OPERATION_ACQUIRE, OPERATION_RENEW, OPERATION_RELEASE, OPERATION_READ,
                                                OPERATION_WRITE};
    if (record->kind < HISTORY_ACQUIRE_INVOKE || record->kind > HISTORY_WRITE_RETURN) return false;
    event->kind = kinds[(record->kind - HISTORY_ACQUIRE_INVOKE) / 2];
    bool invoked = (record->kind - HISTORY_ACQUIRE_INVOKE) % 2 == 0, lock = event->kind < OPERATION_READ;
    if (!model_knows(model, event->kind)) return false;
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

/* False: a limit was reached. */
static bool operation_take(struct history_reader *reader, enum model model, const struct history_record *record,
                           struct operation_source *source) {
    uint64_t index = history_reader_index(reader);
    struct operation_event event = {.process = record->actor, .at = (uint32_t)index};
    struct operations *operations = &source->operations;
    enum operation_kind open;
    char name[NAME_BYTES];
    if (!event_of(model, record, &event)) return true;
    bool lock = event.kind < OPERATION_READ;
    event.object = lock ? history_name(reader, record->name, name, sizeof name) : history_object_name(record->object);
    /* An actor that was killed may restart under its name: its operation under way stays open. */
    bool busy = operations_under_way(operations, event.process, &open);
    if (event.type == EVENT_INVOKE && busy) operations_end_process(operations, event.process);
    enum take_result taken = operations_take(operations, &event);
    if (taken == TAKE_REFUSED && !source->fault[0])
        snprintf(source->fault, sizeof source->fault, "record %llu: %s", (unsigned long long)index, operations->fault);
    return taken != TAKE_FULL;
}

bool recorded_read(struct history_reader *reader, enum model model, struct operation_source *source) {
    struct history_record record;
    source->dropped = history_reader_dropped(reader);
    for (bool room = true; room;) {
        enum history_state state = history_reader_next(reader, false, &record);
        if (state == HISTORY_END) break;
        if (state == HISTORY_DAMAGED) return false;
        if (state == HISTORY_TORN) source->torn++;
        else if (record.kind == HISTORY_ACTOR_EXIT) operations_end_process(&source->operations, record.name);
        else room = operation_take(reader, model, &record, source);
    }
    return true;
}
