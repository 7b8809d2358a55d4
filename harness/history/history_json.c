#include "harness/history/history_json.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const OUTCOMES[] = {"unknown", "ok", "refused"};
static const char *const TIMES[] = {[HISTORY_TIME_VIRTUAL] = "virtual", [HISTORY_TIME_REAL] = "real"};

enum { LINE_LIMIT = 4 << 20, FOLLOW_POLL_US = 2000 };

/* --- writing --- */

struct line_writer {
    struct history_reader *reader;
    FILE *out;
    json_t *names; /* text -> index of its first appearance */
};

static void set_number(json_t *line, const char *key, int64_t value) {
    if (value != 0) json_object_set_new(line, key, json_integer(value));
}

/* Writes the text itself where it stands for this index, the index otherwise. */
static void set_name(const struct line_writer *writer, json_t *line, const char *key, uint32_t index) {
    size_t length;
    const char *text = index ? history_reader_text(writer->reader, index, &length) : NULL;
    json_t *first = text && strlen(text) == length ? json_object_get(writer->names, text) : NULL;
    if (first && json_integer_value(first) == index) json_object_set_new(line, key, json_string(text));
    else set_number(line, key, index);
}

static void set_hex(json_t *line, const void *bytes, size_t length) {
    char *hex = malloc(2 * length + 1);
    if (!hex) abort();
    for (size_t each = 0; each < length; each++) sprintf(hex + 2 * each, "%02x", ((const unsigned char *)bytes)[each]);
    hex[2 * length] = '\0';
    json_object_set_new(line, "hex", json_string(hex));
    free(hex);
}

/* Returns the number of following slots that the text covers; 0 if the text is not whole or was not written by
 * history_text: then they follow one by one. */
static size_t set_text(const struct line_writer *writer, json_t *line, uint32_t index, int64_t stated_length) {
    size_t length;
    const char *text = history_reader_text(writer->reader, index, &length);
    if (!text) {
        json_object_set_new(line, "length", json_integer(stated_length));
        return 0;
    }
    json_t *string = json_stringn(text, length);
    if (string) json_object_set_new(line, "text", string);
    else set_hex(line, text, length);
    if (string && strlen(text) == length && !json_object_get(writer->names, text))
        json_object_set_new(writer->names, text, json_integer(index));
    return (length + HISTORY_TEXT_CHUNK - 1) / HISTORY_TEXT_CHUNK;
}

static bool write_line(const struct line_writer *writer, json_t *line) {
    bool good = json_dumpf(line, writer->out, JSON_COMPACT | JSON_ENSURE_ASCII) == 0 && fputc('\n', writer->out) != EOF;
    json_decref(line);
    return good;
}

static json_t *record_line(const struct line_writer *writer, uint64_t index, const struct history_record *record) {
    json_t *line = json_object();
    const char *kind = history_kind_name(record->kind), *object = history_object_name(record->object);
    json_object_set_new(line, "index", json_integer((json_int_t)index));
    json_object_set_new(line, "kind", kind ? json_string(kind) : json_integer(record->kind));
    if (record->outcome)
        json_object_set_new(line, "outcome",
                            record->outcome <= OUTCOME_REFUSED ? json_string(OUTCOMES[record->outcome])
                                                               : json_integer(record->outcome));
    if (record->object)
        json_object_set_new(line, "object", object ? json_string(object) : json_integer(record->object));
    set_number(line, "flags", record->flags);
    set_name(writer, line, "actor", record->actor);
    set_name(writer, line, "name", record->name);
    set_number(line, "mono_ns", record->mono_ns);
    set_number(line, "wall_ns", record->wall_ns);
    set_number(line, "op", record->op);
    set_number(line, "grant", record->grant);
    set_number(line, "token", record->token);
    if (record->kind != HISTORY_TEXT) set_number(line, "value", record->value);
    set_number(line, "extra", record->extra);
    return line;
}

static bool write_header(const struct line_writer *writer) {
    struct history_settings settings = history_reader_settings(writer->reader);
    uint64_t dropped = history_reader_dropped(writer->reader);
    json_t *line = json_pack("{s:s,s:i,s:s,s:I}", "history", "lockstorm", "version", HISTORY_VERSION, "time",
                             TIMES[settings.time], "seed", (json_int_t)settings.seed);
    if (dropped) json_object_set_new(line, "dropped", json_integer((json_int_t)dropped));
    return write_line(writer, line);
}

static bool write_record(const struct line_writer *writer, uint64_t index, const struct history_record *record,
                         size_t *covered) {
    const struct history_record head = {
        .kind = record->kind, .outcome = record->outcome, .object = record->object, .flags = record->flags};
    json_t *line = record_line(writer, index, record->kind == HISTORY_TEXT_MORE ? &head : record);
    if (record->kind == HISTORY_TEXT_MORE) {
        set_hex(line, &record->actor, HISTORY_TEXT_CHUNK);
    } else if (record->kind == HISTORY_TEXT) {
        *covered = set_text(writer, line, (uint32_t)index, record->value);
    }
    return write_line(writer, line);
}

bool history_json_write(struct history_reader *reader, bool follow, FILE *out, struct history_error *error) {
    struct line_writer writer = {reader, out, json_object()};
    bool good = write_header(&writer);
    size_t covered = 0;
    while (good) {
        struct history_record record;
        enum history_state state = history_reader_next(reader, follow, &record);
        uint64_t index = history_reader_index(reader);
        if (state == HISTORY_END) break;
        if (state == HISTORY_WAIT) {
            fflush(out);
            usleep(FOLLOW_POLL_US);
        } else if (state == HISTORY_DAMAGED) {
            json_decref(writer.names);
            return history_fail(error, "damaged record %llu at byte %llu", (unsigned long long)index,
                                (unsigned long long)(HISTORY_HEADER_SIZE + index * HISTORY_RECORD_SIZE));
        } else if (covered > 0) {
            covered--;
        } else if (state == HISTORY_TORN) {
            good = write_line(&writer, json_pack("{s:I,s:s}", "index", (json_int_t)index, "kind", "torn"));
        } else {
            good = write_record(&writer, index, &record, &covered);
        }
    }
    json_decref(writer.names);
    return (good && fflush(out) == 0) || history_fail(error, "the output could not be written");
}

/* --- reading --- */

struct history_image {
    FILE *out;
    uint64_t count, dropped;
    json_t *names;
    size_t line; /* number of the line, from 1 */
    struct history_error *error;
};

/* Whether it could be written is seen after the line. */
static void history_image_put(struct history_image *image, const struct history_record *slot) {
    fwrite(slot, sizeof *slot, 1, image->out);
    image->count++;
}

static void history_image_add(struct history_image *image, const struct history_record *record) {
    struct history_record slot = *record;
    slot.checksum = history_checksum(&slot, image->count);
    history_image_put(image, &slot);
}

static uint32_t history_image_text(struct history_image *image, const struct history_record *head, const char *text,
                                   size_t length) {
    struct history_record record = *head;
    uint32_t index = (uint32_t)image->count;
    record.kind = HISTORY_TEXT;
    record.value = (int64_t)length;
    history_image_add(image, &record);
    for (size_t offset = 0; offset < length; offset += HISTORY_TEXT_CHUNK) {
        struct history_record more = {.kind = HISTORY_TEXT_MORE};
        memcpy(&more.actor, text + offset, length - offset < HISTORY_TEXT_CHUNK ? length - offset : HISTORY_TEXT_CHUNK);
        history_image_add(image, &more);
    }
    return index;
}

static bool json_field_wrong(struct history_image *image, const char *what, const char *key) {
    return history_fail(image->error, "line %zu: %s%s%s%s", image->line, what, key ? " \"" : "", key ? key : "",
                        key ? "\"" : "");
}

static bool get_number(struct history_image *image, json_t *value, const char *key, int64_t low, int64_t high,
                       int64_t *out) {
    if (!json_is_integer(value)) return json_field_wrong(image, "not a whole number:", key);
    *out = json_integer_value(value);
    return (*out >= low && *out <= high) || json_field_wrong(image, "out of range:", key);
}

/* The position of a word in a list, or the number itself. */
static bool get_word(struct history_image *image, json_t *value, const char *key, const char *(*word)(unsigned),
                     uint8_t *out) {
    int64_t number = 0;
    for (unsigned each = 0; json_is_string(value) && each < 256; each++)
        if (word(each) && strcmp(word(each), json_string_value(value)) == 0) {
            *out = (uint8_t)each;
            return true;
        }
    if (json_is_string(value)) return json_field_wrong(image, "not a known word for", key);
    if (!get_number(image, value, key, 0, UINT8_MAX, &number)) return false;
    *out = (uint8_t)number;
    return true;
}

static const char *outcome_word(unsigned outcome) {
    return outcome <= OUTCOME_REFUSED ? OUTCOMES[outcome] : NULL;
}

/* A name that is not known yet is defined here, before this line's record; not when the line has an explicit index,
 * which leaves no room for it. */
static bool get_name(struct history_image *image, json_t *line, json_t *value, const char *key, uint32_t *out) {
    int64_t number = 0;
    if (json_is_string(value)) {
        if (strlen(json_string_value(value)) != json_string_length(value))
            return json_field_wrong(image, "a zero byte in", key);
        if (json_string_length(value) > HISTORY_TEXT_MAX) return json_field_wrong(image, "too long:", key);
        json_t *known = json_object_get(image->names, json_string_value(value));
        if (known) {
            *out = (uint32_t)json_integer_value(known);
            return true;
        }
        if (json_object_get(line, "index")) return json_field_wrong(image, "no text defines the name in", key);
        if (image->count == 0) history_image_add(image, &(struct history_record){.kind = HISTORY_NOTE});
        *out =
            history_image_text(image, &(struct history_record){0}, json_string_value(value), json_string_length(value));
        json_object_set_new(image->names, json_string_value(value), json_integer(*out));
        return true;
    }
    if (!get_number(image, value, key, 0, UINT32_MAX, &number)) return false;
    *out = (uint32_t)number;
    return true;
}

static bool get_field(struct history_image *image, json_t *line, const char *key, json_t *value,
                      struct history_record *record) {
    int64_t number = 0;
    if (!strcmp(key, "kind")) return get_word(image, value, key, history_kind_name, &record->kind);
    if (!strcmp(key, "outcome")) return get_word(image, value, key, outcome_word, &record->outcome);
    if (!strcmp(key, "object")) return get_word(image, value, key, history_object_name, &record->object);
    if (!strcmp(key, "actor")) return get_name(image, line, value, key, &record->actor);
    if (!strcmp(key, "name")) return get_name(image, line, value, key, &record->name);
    if (!strcmp(key, "mono_ns")) return get_number(image, value, key, INT64_MIN, INT64_MAX, &record->mono_ns);
    if (!strcmp(key, "wall_ns")) return get_number(image, value, key, INT64_MIN, INT64_MAX, &record->wall_ns);
    if (!strcmp(key, "token")) return get_number(image, value, key, INT64_MIN, INT64_MAX, &record->token);
    if (!strcmp(key, "value")) return get_number(image, value, key, INT64_MIN, INT64_MAX, &record->value);
    if (!strcmp(key, "length")) return get_number(image, value, key, INT64_MIN, INT64_MAX, &record->value);
    if (!strcmp(key, "extra")) return get_number(image, value, key, INT64_MIN, INT64_MAX, &record->extra);
    if (!strcmp(key, "index") || !strcmp(key, "text") || !strcmp(key, "hex")) return true; /* handled by the callers */
    bool flags = !strcmp(key, "flags"), op = !strcmp(key, "op"), grant = !strcmp(key, "grant");
    if (!flags && !op && !grant) return json_field_wrong(image, "unknown key", key);
    if (!get_number(image, value, key, 0, flags ? UINT8_MAX : UINT32_MAX, &number)) return false;
    if (flags) record->flags = (uint8_t)number;
    if (op) record->op = (uint32_t)number;
    if (grant) record->grant = (uint32_t)number;
    return true;
}

/* The caller frees *bytes. */
static bool get_hex(struct history_image *image, json_t *value, char **bytes, size_t *length) {
    const char *hex = json_is_string(value) ? json_string_value(value) : "x";
    *length = strlen(hex) / 2;
    if (strlen(hex) % 2 || strspn(hex, "0123456789abcdef") != strlen(hex))
        return json_field_wrong(image, "not hex digits:", "hex");
    *bytes = malloc(*length + 1);
    if (!*bytes) abort();
    for (size_t each = 0; each < *length; each++) {
        const char digits[3] = {hex[2 * each], hex[2 * each + 1], '\0'};
        (*bytes)[each] = (char)strtoul(digits, NULL, 16);
    }
    return true;
}

/* Whether the fields are zero in which a text's bytes are stored. */
static bool is_bare(const struct history_record *record) {
    return !record->actor && !record->name && !record->mono_ns && !record->wall_ns && !record->op && !record->grant &&
           !record->token && !record->value && !record->extra;
}

static bool add_text(struct history_image *image, json_t *line, const struct history_record *record) {
    json_t *text = json_object_get(line, "text"), *hex = json_object_get(line, "hex");
    char *bytes = NULL;
    size_t length = 0;
    if (text && !json_is_string(text)) return json_field_wrong(image, "not a string:", "text");
    if (text && json_string_length(text) > HISTORY_TEXT_MAX) return json_field_wrong(image, "too long:", "text");
    if (hex && json_string_length(hex) > 2 * HISTORY_TEXT_MAX) return json_field_wrong(image, "too long:", "hex");
    if (hex && !get_hex(image, hex, &bytes, &length)) return false;
    if (record->kind == HISTORY_TEXT_MORE) {
        struct history_record more = *record;
        bool fits = bytes && length == HISTORY_TEXT_CHUNK && is_bare(record);
        if (fits) memcpy(&more.actor, bytes, length), history_image_add(image, &more);
        free(bytes);
        return fits || json_field_wrong(image, "text-more has 56 bytes and nothing else in", "hex");
    }
    if (!text && !hex) {
        history_image_add(image, record);
        return true;
    } /* its chunks follow one by one */
    uint32_t index = history_image_text(image, record, text ? json_string_value(text) : bytes,
                                        text ? json_string_length(text) : length);
    bool is_name = text && index > 0 && strlen(json_string_value(text)) == json_string_length(text); /* 0: nobody's */
    if (is_name && !json_object_get(image->names, json_string_value(text)))
        json_object_set_new(image->names, json_string_value(text), json_integer(index));
    free(bytes);
    return true;
}

static bool add_line(struct history_image *image, json_t *line) {
    struct history_record record = {0};
    const char *key, *kind = json_string_value(json_object_get(line, "kind"));
    json_t *value, *index = json_object_get(line, "index");
    if (!json_is_object(line)) return json_field_wrong(image, "not a JSON object", NULL);
    if (index && !json_is_integer(index)) return json_field_wrong(image, "not a whole number:", "index");
    if (index && json_integer_value(index) != (json_int_t)image->count)
        return history_fail(image->error, "line %zu: index %lld where %llu comes next", image->line,
                            (long long)json_integer_value(index), (unsigned long long)image->count);
    if (kind && strcmp(kind, "torn") == 0) {
        if (json_object_size(line) > (index ? 2 : 1))
            return json_field_wrong(image, "nothing is known of a record that is", kind);
        history_image_put(image, &(struct history_record){0});
        return true;
    }
    json_object_foreach(line, key, value) {
        if (!get_field(image, line, key, value, &record)) return false;
    }
    if (!json_object_get(line, "kind")) return json_field_wrong(image, "a record needs a", "kind");
    if (record.kind == HISTORY_TEXT || record.kind == HISTORY_TEXT_MORE) return add_text(image, line, &record);
    if (json_object_get(line, "text") || json_object_get(line, "hex") || json_object_get(line, "length"))
        return json_field_wrong(image, "text, hex and length are for texts, not for a", kind);
    history_image_add(image, &record);
    return true;
}

/* Reads the header line. */
static bool read_header(struct history_image *image, json_t *line, struct history_settings *settings) {
    const char *who = NULL, *time = "virtual";
    json_int_t version = 0, seed = 0, dropped = 0;
    json_error_t why;
    if (json_unpack_ex(line, &why, JSON_STRICT, "{s:s,s:I,s?s,s?I,s?I}", "history", &who, "version", &version, "time",
                       &time, "seed", &seed, "dropped", &dropped) != 0)
        return history_fail(image->error, "line 1: not a history's first line: %.150s", why.text);
    if (strcmp(who, "lockstorm") != 0 || version != HISTORY_VERSION)
        return json_field_wrong(image, "a history of another tool or version", NULL);
    if (strcmp(time, "virtual") != 0 && strcmp(time, "real") != 0)
        return json_field_wrong(image, "virtual or real:", "time");
    if (dropped < 0) return json_field_wrong(image, "out of range:", "dropped");
    image->dropped = (uint64_t)dropped;
    *settings = (struct history_settings){.time = strcmp(time, "real") == 0 ? HISTORY_TIME_REAL : HISTORY_TIME_VIRTUAL,
                                          .seed = (uint64_t)seed};
    return true;
}

static bool json_read_lines(struct history_image *image, FILE *in, struct history_settings *settings,
                            history_json_goes_on *goes_on, void *context) {
    char *text = NULL;
    size_t room = 0;
    bool good = true;
    for (ssize_t length; good && (length = getline(&text, &room, in)) > 0;) {
        json_error_t why;
        image->line++;
        if (length > LINE_LIMIT) {
            good = json_field_wrong(image, "longer than 4 MiB", NULL);
            break;
        }
        json_t *line = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
        if (!line) good = history_fail(image->error, "line %zu, column %d: %.150s", image->line, why.column, why.text);
        else good = image->line == 1 ? read_header(image, line, settings) : add_line(image, line);
        json_decref(line);
        good = good && !ferror(image->out) && (!goes_on || goes_on(context));
    }
    free(text);
    if (good && image->line == 0) good = history_fail(image->error, "empty: not even a first line");
    return good;
}

/* With an empty *error: it could not be written, or `goes_on` said no. */
static bool convert(FILE *in, FILE *out, history_json_goes_on *goes_on, void *context, struct history_error *error) {
    struct history_image image = {.out = out, .names = json_object(), .error = error};
    struct history_settings settings;
    char header[HISTORY_HEADER_SIZE] = {0};
    error->text[0] = '\0';
    bool good = fwrite(header, sizeof header, 1, out) == 1 && json_read_lines(&image, in, &settings, goes_on, context);
    json_decref(image.names);
    if (!good) return false;
    settings.capacity = image.count; /* only now is their number known */
    history_header_fill(header, &settings, image.count + image.dropped);
    off_t end = ftello(out);
    return fseeko(out, 0, SEEK_SET) == 0 && fwrite(header, sizeof header, 1, out) == 1 &&
           fseeko(out, end, SEEK_SET) == 0 && fflush(out) == 0;
}

bool history_json_read(FILE *in, FILE *out, struct history_error *error) {
    if (convert(in, out, NULL, NULL, error)) return true;
    if (!error->text[0]) history_fail(error, "its binary form could not be written: %s", strerror(errno));
    return false;
}

/* An unlinked file in TMPDIR or /tmp: its content need not fit in memory. */
static FILE *scratch_open(struct history_error *error) {
    const char *directory = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lockstorm-check-XXXXXX", directory && *directory ? directory : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!file) history_fail(error, "%.160s: %s", path, strerror(errno));
    if (fd >= 0) unlink(path);
    return file;
}

struct history_reader *history_json_open(FILE *lines, const char *path, const char *refused,
                                         history_json_goes_on *goes_on, void *context, struct history_error *error) {
    struct history_reader *reader = NULL;
    struct history_error wrong;
    FILE *binary = scratch_open(error);
    if (!binary) return NULL;
    if (convert(lines, binary, goes_on, context, &wrong)) reader = history_reader_map(fileno(binary), path, error);
    else history_fail(error, "%.100s: %s%.150s", path, refused, wrong.text);
    fclose(binary);
    return reader;
}
