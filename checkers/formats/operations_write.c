#include "checkers/formats/operations_write.h"

#include <inttypes.h>
#include <stdlib.h>

/* An event of an object, with its number in the input. */
struct written_event {
    uint32_t at, object, operation;
    bool returns;
};

/* In EDN, a process whose operation has an unknown outcome does nothing more: its owner goes on as a new process. */
struct operations_writer {
    const struct operation_source *source;
    struct written_event *events;
    size_t count;
    int64_t *processes; /* by owner */
    int64_t next_process;
    FILE *out;
};

static int by_number(const void *left, const void *right) {
    const struct written_event *one = left, *two = right;
    return one->at < two->at ? -1 : one->at > two->at;
}

static void events_collect(struct operations_writer *writer) {
    const struct operations *operations = &writer->source->operations;
    size_t room = 1;
    for (size_t object = 0; object < operations->object_count; object++) room += 2 * operations->objects[object].count;
    writer->events = malloc(room * sizeof *writer->events);
    writer->processes = calloc(operations->process_count + 1, sizeof *writer->processes);
    if (!writer->events || !writer->processes) abort();
    for (uint32_t object = 0; object < operations->object_count; object++)
        for (uint32_t each = 0; each < operations->objects[object].count; each++) {
            const struct operation *operation = &operations->objects[object].list[each];
            writer->events[writer->count++] = (struct written_event){operation->called_at, object, each, false};
            if (operation->returned_at != OPERATION_OPEN)
                writer->events[writer->count++] = (struct written_event){operation->returned_at, object, each, true};
        }
    qsort(writer->events, writer->count, sizeof *writer->events, by_number);
    for (size_t each = 0; each < operations->process_count; each++) writer->processes[each] = (int64_t)each;
    writer->next_process = (int64_t)operations->process_count;
}

static void quoted(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void number_or_nil(FILE *out, const char *lead, int64_t number) {
    if (number == OPERATION_NIL) fprintf(out, "%snil", lead);
    else fprintf(out, "%s%" PRId64, lead, number);
}

static void edn_value(FILE *out, const struct operation *operation, bool returns) {
    bool known = returns && operation->answer == EVENT_OK;
    fprintf(out, ", :value");
    if (operation->kind == OPERATION_CAS) {
        number_or_nil(out, " [", operation->from);
        number_or_nil(out, " ", operation->value);
        fputc(']', out);
    } else if (operation->kind == OPERATION_WRITE || (operation->kind != OPERATION_RELEASE && known)) {
        number_or_nil(out, " ", operation->value);
    } else {
        fprintf(out, " nil");
    }
}

static void edn_line(struct operations_writer *writer, size_t number) {
    const struct written_event *event = &writer->events[number];
    const struct concurrent_object *object = &writer->source->operations.objects[event->object];
    const struct operation *operation = &object->list[event->operation];
    int64_t *process = &writer->processes[operation->process];
    char name[64];
    fprintf(writer->out, "{:index %zu, :type :%s, :process %" PRId64 ", :f :%s", number,
            EVENT_TYPE[event->returns ? operation->answer : EVENT_INVOKE], *process,
            operation_kind_name((enum operation_kind)operation->kind));
    edn_value(writer->out, operation, event->returns);
    if (*process != operation->process) fprintf(writer->out, ", :owner %" PRIu32, operation->process);
    fprintf(writer->out, ", :client ");
    quoted(writer->out, writer->source->process_name(writer->source, operation->process, name, sizeof name));
    if (object->name) fprintf(writer->out, ", :lock "), quoted(writer->out, object->name);
    fprintf(writer->out, "}\n");
    bool gone = event->returns ? operation->answer == EVENT_UNKNOWN : operation->returned_at == OPERATION_OPEN;
    if (gone) *process = writer->next_process++;
}

/* As the policies read it: what never happened is not written, and an operation whose outcome is unknown returns after
 * everything else. */
static void porcupine_line(struct operations_writer *writer, size_t number) {
    const struct written_event *event = &writer->events[number];
    const struct concurrent_object *object = &writer->source->operations.objects[event->object];
    const struct operation *operation = &object->list[event->operation];
    if (event->returns || operation->outcome == OUTCOME_REFUSED) return;
    bool known = operation->outcome == OUTCOME_OK;
    fprintf(writer->out, "{\"client\":%" PRIu32 ",\"call\":%zu,\"return\":", operation->process, number);
    if (known) {
        size_t low = 0, high = writer->count;
        while (high - low > 1) {
            size_t middle = (low + high) / 2;
            if (writer->events[middle].at <= operation->returned_at) low = middle;
            else high = middle;
        }
        fprintf(writer->out, "%zu", low);
    } else {
        fprintf(writer->out, "%zu", writer->count);
    }
    fprintf(writer->out, ",\"kind\":\"%s\",\"outcome\":\"%s\"",
            operation_kind_name((enum operation_kind)operation->kind), known ? "ok" : "unknown");
    if (operation->value != OPERATION_NIL && (known || operation->kind >= OPERATION_WRITE))
        fprintf(writer->out, ",\"value\":%" PRId64, operation->value);
    if (operation->from != OPERATION_NIL) fprintf(writer->out, ",\"from\":%" PRId64, operation->from);
    if (object->name) fprintf(writer->out, ",\"object\":"), quoted(writer->out, object->name);
    fprintf(writer->out, "}\n");
}

const char *operations_unwritable(const struct operation_source *source) {
    if (source->limits.exceeded[0]) return source->limits.exceeded;
    if (source->fault[0]) return source->fault;
    if (source->operations.policies.refused_lost) return "refusals read as lost cannot be written in these forms";
    return source->operations.policies.leases || source->operations.timed
               ? "leases cannot be written: these forms have no holds that end by themselves"
               : NULL;
}

bool operations_write(const struct operation_source *source, enum write_format format, FILE *out) {
    struct operations_writer writer = {.source = source, .out = out};
    events_collect(&writer);
    for (size_t each = 0; each < writer.count; each++)
        format == WRITE_EDN ? edn_line(&writer, each) : porcupine_line(&writer, each);
    free(writer.events);
    free(writer.processes);
    return fflush(out) == 0 && !ferror(out);
}
