#include "checkers/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkers/atlas.h"
#include "checkers/edn.h"
#include "harness/history_json.h"

enum { SNIFFED = 4096 };

static bool fail(struct history_error *error, const char *path, const char *what) {
    snprintf(error->text, sizeof error->text, "%.100s: %.150s", path, what);
    return false;
}

/* --- which form --- */

static size_t past_blanks(const char *bytes, size_t length, size_t at) {
    while (at < length && (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\t' || bytes[at] == '\r')) at++;
    return at;
}

/* EDN and JSON both begin with a bracket or brace; in JSON a quote comes after the brace. */
static enum linearize_form form_of(const char *bytes, size_t length) {
    size_t at = past_blanks(bytes, length, 0);
    if (length >= 8 && memcmp(bytes, "lckstorm", 8) == 0) return LINEARIZE_RECORDED;
    bool array = at < length && bytes[at] == '[';
    if (array) at = past_blanks(bytes, length, at + 1);
    if (at >= length || bytes[at] != '{') return LINEARIZE_EDN;
    at = past_blanks(bytes, length, at + 1);
    if (at >= length || bytes[at] != '"') return LINEARIZE_EDN;
    bool own = length - at >= 10 && memcmp(bytes + at, "\"history\":", 10) == 0;
    return own && !array ? LINEARIZE_JSON_LINES : LINEARIZE_ATLAS;
}

/* Only what can be read twice can be looked at first: a pipe goes to a file that nobody else sees. */
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

/* --- reading --- */

static bool take_record(void *context, const struct history_record *record, uint64_t index) {
    return recorded_take(context, record, index);
}

static bool read_records(struct source *source, const char *path, struct history_error *error) {
    struct history_record record;
    struct history_reader *reader = history_reader_open(path, error);
    if (!reader) return false;
    source->recorded.dropped = history_reader_dropped(reader);
    enum history_state state;
    while ((state = history_reader_next(reader, false, &record)) != HISTORY_END && state != HISTORY_DAMAGED) {
        if (state == HISTORY_TORN) record = (struct history_record){0};
        if (!recorded_take(&source->recorded, &record, history_reader_index(reader))) break;
    }
    uint64_t index = history_reader_index(reader);
    if (state == HISTORY_DAMAGED)
        snprintf(error->text, sizeof error->text,
                 "%.100s: damaged record %llu at byte %llu: its content does not fit its check word", path,
                 (unsigned long long)index, (unsigned long long)(HISTORY_HEADER_SIZE + index * HISTORY_RECORD_SIZE));
    history_reader_close(reader);
    return state != HISTORY_DAMAGED;
}

static bool read_lines(struct source *source, const char *path, FILE *file, struct history_error *error) {
    struct history_error why = {.text = ""};
    if (history_json_each(file, take_record, &source->recorded, &source->recorded.dropped, &why)) return true;
    return source->limits.exceeded[0] || fail(error, path, why.text);
}

static bool read_text(struct source *source, const char *path, FILE *file, struct history_error *error) {
    struct text *text = malloc(sizeof *text);
    if (!text) abort();
    text_open(text, file);
    enum outside_result result =
        source->form == LINEARIZE_EDN ? edn_read(text, &source->operations) : atlas_read(text, &source->operations);
    if (result == OUTSIDE_BAD) fail(error, path, text->error);
    free(text);
    return result != OUTSIDE_BAD;
}

bool source_read(struct source *source, const char *path, const struct linearize_settings *settings,
                 struct history_error *error) {
    char first[SNIFFED];
    struct policies policies = settings->policies;
    memset(source, 0, sizeof *source);
    limits_begin(&source->limits, settings->memory_bytes, settings->time_ns);
    operations_begin(&source->operations, &source->limits, &policies);
    recorded_begin(&source->recorded, &source->operations, settings->model.model);
    FILE *file = fopen(path, "re");
    struct stat stat;
    if (file && fstat(fileno(file), &stat) == 0 && S_ISDIR(stat.st_mode)) errno = EISDIR, fclose(file), file = NULL;
    if (file) file = seekable(file);
    if (!file) return fail(error, path, strerror(errno));
    size_t length = fread(first, 1, sizeof first, file);
    rewind(file);
    source->form = settings->form == LINEARIZE_ANY ? form_of(first, length) : settings->form;
    source->operations.policies.leases |= source->form == LINEARIZE_ATLAS;
    bool good;
    if (source->form == LINEARIZE_RECORDED) good = read_records(source, path, error);
    else if (source->form == LINEARIZE_JSON_LINES) good = read_lines(source, path, file, error);
    else good = read_text(source, path, file, error);
    fclose(file);
    return good;
}

void source_end(struct source *source) {
    recorded_end(&source->recorded);
    operations_end(&source->operations);
}

/* --- names --- */

static bool is_own(const struct source *source) {
    return source->form == LINEARIZE_RECORDED || source->form == LINEARIZE_JSON_LINES;
}

const char *source_process(const struct source *source, uint32_t process, char *buffer, size_t size) {
    int64_t number = operations_process(&source->operations, process);
    if (is_own(source)) return recorded_name(&source->recorded, number, buffer, size);
    snprintf(buffer, size, "process %lld", (long long)number);
    return buffer;
}

const char *source_event(const struct source *source) {
    return is_own(source) ? "record" : "event";
}
