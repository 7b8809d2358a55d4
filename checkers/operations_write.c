/* Operations in the forms that others read: Jepsen's EDN, and lines for a test with Porcupine. docs/linearizable.md
 * defines both. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/source.h"

/* An event of some object, by the number that it has in the input. */
struct written {
    uint32_t at, object, operation;
    bool returns;
};

/* The process that EDN gives to an owner: there, one whose operation has an unknown outcome does nothing more. */
struct writer {
    const struct source *source;
    struct written *events;
    size_t count;
    int64_t *processes; /* by owner */
    int64_t next_process;
    FILE *out;
};

static int by_number(const void *left, const void *right) {
    const struct written *one = left, *two = right;
    return one->at < two->at ? -1 : one->at > two->at;
}

static void events_collect(struct writer *writer) {
    const struct operations *operations = &writer->source->operations;
    size_t room = 1;
    for (size_t object = 0; object < operations->object_count; object++) room += 2 * operations->objects[object].count;
    writer->events = malloc(room * sizeof *writer->events);
    writer->processes = calloc(operations->process_count + 1, sizeof *writer->processes);
    if (!writer->events || !writer->processes) abort();
    for (uint32_t object = 0; object < operations->object_count; object++)
        for (uint32_t each = 0; each < operations->objects[object].count; each++) {
            const struct operation *operation = &operations->objects[object].list[each];
            writer->events[writer->count++] = (struct written){operation->called_at, object, each, false};
            if (operation->returned_at != OPERATION_OPEN)
                writer->events[writer->count++] = (struct written){operation->returned_at, object, each, true};
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
    bool known = returns && operation->said == EVENT_OK;
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

static void edn_line(struct writer *writer, size_t number) {
    static const char *const types[] = {"invoke", "ok", "fail", "info"};
    const struct written *event = &writer->events[number];
    const struct object *object = &writer->source->operations.objects[event->object];
    const struct operation *operation = &object->list[event->operation];
    int64_t *process = &writer->processes[operation->process];
    char name[64];
    fprintf(writer->out, "{:index %zu, :type :%s, :process %" PRId64 ", :f :%s", number,
            types[event->returns ? operation->said : EVENT_INVOKE], *process,
            operation_kind_name((enum operation_kind)operation->kind));
    edn_value(writer->out, operation, event->returns);
    if (*process != operation->process) fprintf(writer->out, ", :owner %" PRIu32, operation->process);
    fprintf(writer->out, ", :client ");
    quoted(writer->out, source_process(writer->source, operation->process, name, sizeof name));
    if (object->name) fprintf(writer->out, ", :lock "), quoted(writer->out, object->name);
    fprintf(writer->out, "}\n");
    bool gone = event->returns ? operation->said == EVENT_UNKNOWN : operation->returned_at == OPERATION_OPEN;
    if (gone) *process = writer->next_process++;
}

/* An operation whose outcome is unknown returns after everything else. */
static void porcupine_line(struct writer *writer, size_t number) {
    const struct written *event = &writer->events[number];
    const struct object *object = &writer->source->operations.objects[event->object];
    const struct operation *operation = &object->list[event->operation];
    if (event->returns || operation->said == EVENT_FAIL) return;
    bool known = operation->said == EVENT_OK;
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

static const char *unwritable(const struct source *source) {
    if (source->limits.exceeded[0]) return source->limits.exceeded;
    if (source->recorded.fault[0]) return source->recorded.fault;
    return source->operations.policies.leases
               ? "leases cannot be written: these forms have no holds that end by themselves"
               : NULL;
}

bool linearize_write(const char *path, const struct linearize_settings *settings, enum linearize_output output,
                     FILE *out, struct history_error *error) {
    struct source source;
    struct writer writer = {.source = &source, .out = out};
    bool good = source_read(&source, path, settings, error);
    const char *fault = good ? unwritable(&source) : NULL;
    if (fault) good = false, snprintf(error->text, sizeof error->text, "%.100s: %.150s", path, fault);
    if (good) {
        events_collect(&writer);
        for (size_t each = 0; each < writer.count; each++)
            output == LINEARIZE_TO_EDN ? edn_line(&writer, each) : porcupine_line(&writer, each);
        good = fflush(out) == 0 && !ferror(out);
        if (!good) snprintf(error->text, sizeof error->text, "the output could not be written");
    }
    free(writer.events);
    free(writer.processes);
    source_end(&source);
    return good;
}
