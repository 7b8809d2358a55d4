#include "checkers/formats/operations_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkers/formats/text.h"
#include "harness/history/history_json.h"

enum { SNIFFED = 4096, NAME_BYTES = 256 };

static bool operations_read_fail(struct history_error *error, const char *path, const char *what) {
    snprintf(error->text, sizeof error->text, "%.100s: %.150s", path, what);
    return false;
}

/* --- which format --- */

static size_t past_blanks(const char *bytes, size_t length, size_t at) {
    while (at < length && (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\t' || bytes[at] == '\r')) at++;
    return at;
}

/* EDN and JSON both begin with a bracket or brace; in JSON a quote comes after the brace. */
static enum file_format format_of(const char *bytes, size_t length) {
    size_t at = past_blanks(bytes, length, 0);
    if (length >= 8 && memcmp(bytes, "lckstorm", 8) == 0) return FORMAT_RECORDED;
    bool array = at < length && bytes[at] == '[';
    if (array) at = past_blanks(bytes, length, at + 1);
    if (at >= length || bytes[at] != '{') return FORMAT_EDN;
    at = past_blanks(bytes, length, at + 1);
    if (at >= length || bytes[at] != '"') return FORMAT_EDN;
    bool own = length - at >= 10 && memcmp(bytes + at, "\"history\":", 10) == 0;
    return own && !array ? FORMAT_JSON_LINES : FORMAT_ATLAS;
}

/* Detecting the format reads the beginning twice: a pipe is copied to a temporary file first. */
static FILE *seekable(FILE *file) {
    char bytes[1 << 14];
    struct stat stat;
    if (fstat(fileno(file), &stat) == 0 && S_ISREG(stat.st_mode)) return file;
    FILE *copy = tmpfile();
    for (size_t length; copy && (length = fread(bytes, 1, sizeof bytes, file)) > 0;)
        if (fwrite(bytes, 1, length, copy) != length) fclose(copy), copy = NULL;
    fclose(file);
    if (copy) rewind(copy);
    return copy;
}

/* --- histories of our own --- */

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

/* Fills the source with the operations of a model, what is missing, and what is wrong, until a limit is reached. False:
 * a record is damaged, at history_reader_index. */
static bool recorded_read(struct history_reader *reader, enum model model, struct operation_source *source) {
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

/* --- reading --- */

static bool is_in_time(void *limits) {
    return !limits_late(limits);
}

static bool read_history(struct operations_file *operations, const char *path, FILE *file, enum model model,
                         struct history_error *error) {
    struct operation_source *source = &operations->source;
    operations->reader = operations->format == FORMAT_RECORDED
                             ? history_reader_open(path, error)
                             : history_json_open(file, path, "", is_in_time, &source->limits, error);
    if (!operations->reader) return source->limits.exceeded[0];
    return recorded_read(operations->reader, model, source) ||
           history_fail_damaged(error, path, history_reader_index(operations->reader));
}

static bool read_text(struct operations_file *operations, const char *path, FILE *file, struct history_error *error) {
    struct text *text = malloc(sizeof *text);
    if (!text) abort();
    text_open(text, file);
    enum parse_result result = operations->format == FORMAT_EDN ? edn_read(text, &operations->source.operations)
                                                                : atlas_read(text, &operations->source.operations);
    if (result == PARSE_BAD) operations_read_fail(error, path, text->error);
    free(text);
    return result != PARSE_BAD;
}

/* --- names --- */

static const char *recorded_process_name(const struct operation_source *source, uint32_t process, char *buffer,
                                         size_t size) {
    /* The source is the first member of its file. */
    const struct operations_file *operations = (const struct operations_file *)source;
    char name[NAME_BYTES];
    uint32_t index = (uint32_t)operations_process(&source->operations, process);
    snprintf(buffer, size, "%s", history_name(operations->reader, index, name, sizeof name));
    return buffer;
}

static const char *numbered_process_name(const struct operation_source *source, uint32_t process, char *buffer,
                                         size_t size) {
    const char *owner = operations_owner(&source->operations, process);
    if (owner) snprintf(buffer, size, "%s", owner);
    else snprintf(buffer, size, "process %lld", (long long)operations_process(&source->operations, process));
    return buffer;
}

/* --- the whole --- */

static void set_format(struct operations_file *operations, enum file_format format) {
    struct operation_source *source = &operations->source;
    bool own = format == FORMAT_RECORDED || format == FORMAT_JSON_LINES;
    operations->format = format;
    source->operations.policies.leases |= format == FORMAT_ATLAS;
    source->initial = own ? 0 : OPERATION_NIL;
    source->event_noun = own ? "record" : "event";
    source->process_name = own ? recorded_process_name : numbered_process_name;
}

bool operations_read(struct operations_file *operations, const char *path, const struct read_settings *settings,
                     struct history_error *error) {
    char first[SNIFFED];
    struct stat stat;
    *operations = (struct operations_file){.format = settings->format};
    limits_begin(&operations->source.limits, settings->memory_bytes, settings->time_ns);
    operations_begin(&operations->source.operations, &operations->source.limits, &settings->policies);
    FILE *file = fopen(path, "re");
    if (file && fstat(fileno(file), &stat) == 0 && S_ISDIR(stat.st_mode)) errno = EISDIR, fclose(file), file = NULL;
    if (file) file = seekable(file);
    if (!file) return operations_read_fail(error, path, strerror(errno));
    size_t length = fread(first, 1, sizeof first, file);
    rewind(file);
    set_format(operations, settings->format == FORMAT_ANY ? format_of(first, length) : settings->format);
    bool own = operations->format == FORMAT_RECORDED || operations->format == FORMAT_JSON_LINES;
    bool good =
        own ? read_history(operations, path, file, settings->model, error) : read_text(operations, path, file, error);
    fclose(file);
    return good;
}

void operations_file_end(struct operations_file *operations) {
    history_reader_close(operations->reader);
    operations_end(&operations->source.operations);
}
