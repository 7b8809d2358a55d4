#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "harness/recogniser/postgres_talk.h"

/* The protocol, version 3: requests become steps, which the answers take away one by one. After an error the server
 * skips everything up to the next Sync. */

enum { LENGTH_BYTES = 4, HEAD_BYTES = 5, COLUMNS_MOST = 256, COLUMN_BYTES = 18 };
enum { STARTUP_MAJOR = 3, REQUEST_CODES = 1234, REQUEST_TLS = 5679, REQUEST_GSS = 5680 };

/* --- reading a message; what is not there reads as 0 --- */

struct wire_reader {
    struct span rest;
};

static struct span wire_bytes(struct wire_reader *reader, size_t length) {
    if (length > reader->rest.length) length = reader->rest.length;
    struct span bytes = {reader->rest.bytes, length};
    reader->rest = (struct span){reader->rest.bytes + length, reader->rest.length - length};
    return bytes;
}

static uint32_t wire_number(struct wire_reader *reader, size_t length) {
    struct span bytes = wire_bytes(reader, length);
    uint32_t number = 0;
    for (size_t each = 0; each < bytes.length; each++) number = number << 8 | (unsigned char)bytes.bytes[each];
    return bytes.length == length ? number : 0;
}

static struct span wire_text(struct wire_reader *reader) {
    const char *end = memchr(reader->rest.bytes, '\0', reader->rest.length);
    size_t length = end ? (size_t)(end - reader->rest.bytes) : reader->rest.length;
    struct span text = wire_bytes(reader, length);
    wire_bytes(reader, 1);
    return text;
}

/* A value with its length; NULL has no bytes. */
static struct span wire_value(struct wire_reader *reader) {
    uint32_t length = wire_number(reader, LENGTH_BYTES);
    return length == UINT32_MAX ? (struct span){NULL, 0} : wire_bytes(reader, length);
}

/* --- what is prepared --- */

static struct prepared_statement *prepared_hold(struct prepared_statement *prepared) {
    if (prepared) prepared->holders++;
    return prepared;
}

static void prepared_drop(void *value) {
    struct prepared_statement *prepared = value;
    if (!prepared || --prepared->holders > 0) return;
    if (prepared->sql) sql_statement_drop(prepared->sql);
    free(prepared->types);
    free(prepared);
}

static struct bound_statement *bound_hold(struct bound_statement *bound) {
    if (bound) bound->holders++;
    return bound;
}

static void bound_drop(void *value) {
    struct bound_statement *bound = value;
    if (!bound || --bound->holders > 0) return;
    prepared_drop(bound->prepared);
    free(bound->parameters);
    free(bound);
}

/* *used: bytes of the text that belong to its first statement. */
static struct prepared_statement *prepared_make(struct span text, size_t *used) {
    struct prepared_statement *prepared = calloc(1, sizeof *prepared);
    if (!prepared) abort();
    prepared->holders = 1;
    *used = text.length;
    if (text.length <= STATEMENT_MOST) prepared->sql = sql_statement_read(text, used);
    return prepared;
}

static void prepared_types_read(struct prepared_statement *prepared, struct wire_reader *reader) {
    uint32_t count = wire_number(reader, 2);
    if (count > PARAMETERS_MOST || count > reader->rest.length / LENGTH_BYTES || count == 0) return;
    free(prepared->types);
    prepared->types = calloc(count, sizeof *prepared->types);
    if (!prepared->types) abort();
    prepared->type_count = (int)count;
    for (uint32_t each = 0; each < count; each++) prepared->types[each] = wire_number(reader, LENGTH_BYTES);
}

/* --- steps --- */

static struct postgres_step *step_at(const struct postgres_talk *talk, size_t at) {
    assert(at < talk->step_count);
    return &talk->steps[(talk->step_first + at) % talk->step_room];
}

static void steps_grow(struct postgres_talk *talk) {
    size_t room = talk->step_room ? 2 * talk->step_room : 16;
    struct postgres_step *steps = malloc(room * sizeof *steps);
    if (!steps) abort();
    for (size_t each = 0; each < talk->step_count; each++) steps[each] = *step_at(talk, each);
    free(talk->steps);
    talk->steps = steps;
    talk->step_room = room;
    talk->step_first = 0;
}

/* Takes what the step holds. */
static void postgres_step_add(struct postgres_talk *talk, struct postgres_step step) {
    if (talk->step_count == UNANSWERED_MOST)
        wire_session_deafen(talk->session, step.moment, "too many requests wait for answers");
    if (talk->step_count == talk->step_room) steps_grow(talk);
    talk->step_count++;
    *step_at(talk, talk->step_count - 1) = step;
}

static void step_drop(struct postgres_talk *talk) {
    struct postgres_step *step = step_at(talk, 0);
    prepared_drop(step->prepared);
    bound_drop(step->bound);
    talk->step_first = (talk->step_first + 1) % talk->step_room;
    talk->step_count--;
}

/* The oldest step, if it is of this kind; NULL: an answer came that belongs to nothing that was seen. */
static struct postgres_step *step_of(const struct postgres_talk *talk, enum postgres_step_kind kind) {
    struct postgres_step *step = talk->step_count > 0 ? step_at(talk, 0) : NULL;
    return step && step->kind == kind ? step : NULL;
}

static void step_done(struct postgres_talk *talk, enum postgres_step_kind kind) {
    if (step_of(talk, kind)) step_drop(talk);
}

/* --- requests --- */

/* Of default_transaction_isolation, or of options that have it: -c default_transaction_isolation=serializable */
static enum wire_isolation startup_isolation(struct span name, struct span value) {
    static const char SETTING[] = "default_transaction_isolation";
    char bytes[SQL_NAME];
    struct short_text text = short_text_in(bytes, sizeof bytes);
    if (!span_is(name, SETTING) && !span_is(name, "options")) return ISOLATION_NOT_KNOWN;
    short_text_add(&text, value);
    if (span_is(name, SETTING)) return sql_isolation_called(bytes);
    char *found = strstr(bytes, SETTING), *end;
    if (!found || found[sizeof SETTING - 1] != '=') return ISOLATION_NOT_KNOWN;
    found += sizeof SETTING;
    /* A blank within the value has a backslash in front of it. */
    for (end = found; *end && *end != ' '; end++)
        if (*end == '\\') memmove(end, end + 1, strlen(end));
    *end = '\0';
    return sql_isolation_called(found);
}

static void startup_read(struct postgres_talk *talk, struct wire_reader *reader, struct wire_moment moment) {
    const char *usual = talk->session->recogniser->settings.database;
    uint32_t major = wire_number(reader, 2), minor = wire_number(reader, 2);
    if (major == REQUEST_CODES && (minor == REQUEST_TLS || minor == REQUEST_GSS)) return;
    talk->has_started = true;
    if (major != STARTUP_MAJOR) return; /* a cancellation */
    struct span user = {NULL, 0}, database = {NULL, 0};
    while (reader->rest.length > 1) {
        struct span name = wire_text(reader), value = wire_text(reader);
        if (span_is(name, "user")) user = value;
        if (span_is(name, "database")) database = value;
        enum wire_isolation isolation = startup_isolation(name, value);
        if (isolation != ISOLATION_NOT_KNOWN) talk->isolation = isolation;
    }
    if (database.length == 0) database = user;
    if (usual && database.length > 0 && !span_is(database, usual)) {
        struct short_text text = short_text_in(talk->database, sizeof talk->database);
        short_text_say(&text, "postgres/");
        short_text_add(&text, database);
    }
    postgres_step_add(talk, (struct postgres_step){.kind = STEP_READY, .moment = moment});
}

static void query_request(struct postgres_talk *talk, struct wire_reader *reader, struct wire_moment moment) {
    struct span text = wire_text(reader);
    int count = 0;
    do {
        size_t used = 0;
        struct bound_statement *bound = calloc(1, sizeof *bound);
        if (!bound) abort();
        bound->holders = 1;
        bound->prepared = prepared_make(text, &used);
        text = (struct span){text.bytes + used, text.length - used};
        const struct sql_statement *sql = bound->prepared->sql;
        bool is_empty = sql && sql->tokens.count == 0;
        moment.statement = is_empty ? moment.statement : ++talk->session->statements;
        if (!is_empty) postgres_statement_asked(talk, moment, bound);
        if (!is_empty)
            postgres_step_add(
                talk, (struct postgres_step){
                          .kind = STEP_STATEMENT, .is_simple = true, .moment = moment, .bound = bound_hold(bound)});
        bound_drop(bound);
    } while (text.length > 0 && ++count < QUERY_STATEMENTS && !talk->session->deaf);
    if (text.length > 0)
        wire_not_recognised(talk->session, moment, "", "more statements in one message than are looked at");
    postgres_step_add(talk, (struct postgres_step){.kind = STEP_READY, .moment = moment});
}

static void parse_request(struct postgres_talk *talk, struct wire_reader *reader, struct wire_moment moment) {
    struct span name = wire_text(reader), text = wire_text(reader);
    size_t used;
    struct prepared_statement *prepared = prepared_make(text, &used);
    prepared_types_read(prepared, reader);
    text_table_put(&talk->prepared, name, prepared);
    postgres_step_add(
        talk, (struct postgres_step){.kind = STEP_PARSE, .moment = moment, .prepared = prepared_hold(prepared)});
}

/* The parameters' texts stand in one piece behind the list. */
static void parameters_read(struct bound_statement *bound, struct wire_reader *reader) {
    int formats[FORMATS_MOST] = {0};
    uint32_t format_count = wire_number(reader, 2);
    for (uint32_t each = 0; each < format_count && reader->rest.length > 0; each++) {
        int format = (int)wire_number(reader, 2);
        if (each < FORMATS_MOST) formats[each] = format;
    }
    uint32_t count = wire_number(reader, 2);
    if (count > PARAMETERS_MOST) count = 0;
    size_t each_most = 2 * (size_t)VALUE_MOST + 42; /* hexadecimal, uuids and numbers are longer than on the wire */
    size_t room = 64 + (reader->rest.length / 2 < each_most * count ? 2 * reader->rest.length + 42 * (size_t)count
                                                                    : each_most * count);
    bound->parameters = calloc(1, count * sizeof *bound->parameters + room);
    if (!bound->parameters) abort();
    struct short_text text = short_text_in((char *)(bound->parameters + count), room);
    bound->parameter_count = (int)count;
    for (uint32_t each = 0; each < count; each++) {
        struct span value = wire_value(reader);
        int format = format_count == 1 ? formats[0] : each < FORMATS_MOST ? formats[each] : 0;
        uint32_t type = bound->prepared && (int)each < bound->prepared->type_count ? bound->prepared->types[each] : 0;
        size_t begin = text.length;
        if (!value.bytes) continue;
        if (value.length > VALUE_MOST) value.length = VALUE_MOST;
        postgres_value_add(&text, value, type, format == 1);
        bound->parameters[each] = (struct span){text.bytes + begin, text.length - begin};
    }
}

static void bind_request(struct postgres_talk *talk, struct wire_reader *reader, struct wire_moment moment) {
    struct span portal = wire_text(reader), name = wire_text(reader);
    struct bound_statement *bound = calloc(1, sizeof *bound);
    if (!bound) abort();
    bound->holders = 1;
    bound->prepared = prepared_hold(text_table_find(&talk->prepared, name));
    parameters_read(bound, reader);
    uint32_t count = wire_number(reader, 2);
    for (uint32_t each = 0; each < count && each < FORMATS_MOST; each++)
        bound->formats[bound->format_count++] = (int)wire_number(reader, 2);
    text_table_put(&talk->portals, portal, bound);
    postgres_step_add(talk, (struct postgres_step){.kind = STEP_BIND, .moment = moment});
}

static void describe_request(struct postgres_talk *talk, struct wire_reader *reader, struct wire_moment moment) {
    bool is_portal = wire_number(reader, 1) == 'P';
    struct span name = wire_text(reader);
    const struct bound_statement *bound = is_portal ? text_table_find(&talk->portals, name) : NULL;
    struct prepared_statement *prepared =
        is_portal ? (bound ? bound->prepared : NULL) : text_table_find(&talk->prepared, name);
    postgres_step_add(
        talk, (struct postgres_step){.kind = STEP_DESCRIBE, .moment = moment, .prepared = prepared_hold(prepared)});
}

static void execute_request(struct postgres_talk *talk, struct wire_reader *reader, struct wire_moment moment) {
    struct bound_statement *bound = text_table_find(&talk->portals, wire_text(reader));
    moment.statement = ++talk->session->statements;
    postgres_statement_asked(talk, moment, bound);
    postgres_step_add(talk,
                      (struct postgres_step){.kind = STEP_STATEMENT, .moment = moment, .bound = bound_hold(bound)});
}

static void close_request(struct postgres_talk *talk, struct wire_reader *reader, struct wire_moment moment) {
    bool is_portal = wire_number(reader, 1) == 'P';
    text_table_remove(is_portal ? &talk->portals : &talk->prepared, wire_text(reader));
    postgres_step_add(talk, (struct postgres_step){.kind = STEP_CLOSE, .moment = moment});
}

static void typed_request(struct postgres_talk *talk, char type, struct wire_reader *reader,
                          struct wire_moment moment) {
    switch (type) {
    case 'Q': query_request(talk, reader, moment); break;
    case 'P': parse_request(talk, reader, moment); break;
    case 'B': bind_request(talk, reader, moment); break;
    case 'D': describe_request(talk, reader, moment); break;
    case 'E': execute_request(talk, reader, moment); break;
    case 'C': close_request(talk, reader, moment); break;
    case 'S': postgres_step_add(talk, (struct postgres_step){.kind = STEP_READY, .moment = moment}); break;
    case 'F':
        moment.statement = ++talk->session->statements;
        wire_not_recognised(talk->session, moment, "", "a function was called past SQL");
        postgres_step_add(talk, (struct postgres_step){.kind = STEP_CALL, .moment = moment});
        postgres_step_add(talk, (struct postgres_step){.kind = STEP_READY, .moment = moment});
        break;
    default: break; /* passwords, Flush, Terminate, data of COPY */
    }
}

/* Takes one typed message from the bytes; 0: there is no whole one. */
static char typed_message(struct wire_reader *bytes, struct wire_reader *body) {
    if (bytes->rest.length < HEAD_BYTES) return 0;
    char type = bytes->rest.bytes[0];
    struct wire_reader head = {{bytes->rest.bytes + 1, LENGTH_BYTES}};
    uint32_t length = wire_number(&head, LENGTH_BYTES);
    if (length < LENGTH_BYTES || length > bytes->rest.length - 1 || !isalnum((unsigned char)type)) return 0;
    wire_bytes(bytes, HEAD_BYTES);
    body->rest = wire_bytes(bytes, length - LENGTH_BYTES);
    return type;
}

void postgres_talk_request(struct postgres_talk *talk, struct span message, int64_t at_ns) {
    struct wire_reader bytes = {message}, body;
    struct wire_moment moment = {talk->session->statements, at_ns, at_ns};
    if (talk->step_count == 0) talk->asked = talk->answered;
    if (message.length > 0 && message.bytes[0] == '\0' && !talk->has_started) {
        uint32_t length = wire_number(&bytes, LENGTH_BYTES);
        body.rest = wire_bytes(&bytes, length > LENGTH_BYTES ? length - LENGTH_BYTES : bytes.rest.length);
        startup_read(talk, &body, moment);
    }
    if (bytes.rest.length == 0) return;
    talk->has_started = true;
    for (char type; !talk->session->deaf && (type = typed_message(&bytes, &body));)
        typed_request(talk, type, &body, moment);
    if (bytes.rest.length > 0 && !talk->session->deaf)
        wire_session_deafen(talk->session, moment, "a request that is not of PostgreSQL's protocol: is it encrypted?");
}

/* --- answers --- */

static void row_description(struct postgres_talk *talk, struct wire_reader *reader) {
    struct postgres_step *step = talk->step_count > 0 ? step_at(talk, 0) : NULL;
    struct prepared_statement *prepared = NULL;
    if (step && step->kind == STEP_DESCRIBE) prepared = step->prepared;
    if (step && step->kind == STEP_STATEMENT && step->bound) prepared = step->bound->prepared;
    uint32_t count = wire_number(reader, 2);
    if (prepared) row_shape_begin(&prepared->shape);
    for (uint32_t each = 0; each < count && prepared && reader->rest.length > 0; each++) {
        struct span name = wire_text(reader);
        uint32_t table = wire_number(reader, 4);
        wire_number(reader, 2);
        uint32_t type = wire_number(reader, 4);
        wire_bytes(reader, COLUMN_BYTES - 10);
        char column[SQL_NAME];
        struct short_text text = short_text_in(column, sizeof column);
        short_text_add(&text, name);
        row_shape_column(talk, &prepared->shape, prepared->sql, (int)each, table, column, type);
    }
    step_done(talk, STEP_DESCRIBE);
}

static void data_row(struct postgres_talk *talk, struct wire_reader *reader) {
    const struct postgres_step *step = step_of(talk, STEP_STATEMENT);
    struct span columns[COLUMNS_MOST];
    if (!step || !step->bound || !step->bound->prepared) return;
    uint32_t count = wire_number(reader, 2);
    if (count > COLUMNS_MOST) count = COLUMNS_MOST;
    for (uint32_t each = 0; each < count; each++) columns[each] = wire_value(reader);
    postgres_statement_row(talk, step->bound, &step->bound->prepared->shape, columns, (int)count);
}

/* The number at the end of a tag: UPDATE 1, INSERT 0 1. */
static int64_t affected_rows(struct span tag) {
    int64_t number = 0;
    size_t at = tag.length;
    while (at > 0 && isdigit((unsigned char)tag.bytes[at - 1])) at--;
    for (; at < tag.length && number < INT64_MAX / 100; at++) number = number * 10 + (tag.bytes[at] - '0');
    return number;
}

static void statement_done(struct postgres_talk *talk, struct span tag, int64_t at_ns) {
    struct postgres_step *step = step_of(talk, STEP_STATEMENT);
    if (!step) return;
    step->moment.answered_ns = at_ns;
    postgres_statement_done(talk, step->moment, step->bound, span_is(tag, "ROLLBACK"), affected_rows(tag));
    step_drop(talk);
}

static void error_answer(struct postgres_talk *talk, struct wire_reader *reader, int64_t at_ns) {
    struct short_text state = short_text_in(talk->refused, sizeof talk->refused);
    while (reader->rest.length > 1) {
        bool is_state = wire_number(reader, 1) == 'C';
        struct span text = wire_text(reader);
        if (is_state && state.length == 0) short_text_add(&state, text);
    }
    char first[sizeof talk->refused];
    memcpy(first, talk->refused, sizeof first);
    /* What could not be parsed is not prepared, nor is anything that is skipped: a later Bind would fail, too. */
    while (talk->step_count > 0 && step_at(talk, 0)->kind != STEP_READY) {
        struct postgres_step *step = step_at(talk, 0);
        step->moment.answered_ns = at_ns;
        if (step->kind == STEP_STATEMENT) postgres_statement_failed(talk, step->moment, step->bound);
        step_drop(talk);
        strcpy(talk->refused, "skipped after an error");
    }
    memcpy(talk->refused, first, sizeof first);
}

/* While data is copied in, the server ignores a Sync that was sent behind Execute. */
static void copy_begin(struct postgres_talk *talk) {
    const struct postgres_step *step = step_of(talk, STEP_STATEMENT);
    if (!step || step->is_simple || talk->step_count < 2 || step_at(talk, 1)->kind != STEP_READY) return;
    struct postgres_step statement = *step;
    talk->step_first = (talk->step_first + 1) % talk->step_room;
    talk->step_count--;
    *step_at(talk, 0) = statement;
}

static void ready_answer(struct postgres_talk *talk, char status, int64_t at_ns) {
    while (talk->step_count > 0 && step_at(talk, 0)->kind != STEP_READY) {
        if (step_at(talk, 0)->kind == STEP_STATEMENT)
            wire_not_recognised(talk->session, step_at(talk, 0)->moment, "", "its answer was not seen");
        step_drop(talk);
    }
    step_done(talk, STEP_READY);
    transaction_ready(talk, at_ns, status);
    if (status == 'I' && talk->step_count == 0) text_table_clear(&talk->portals);
}

static void typed_answer(struct postgres_talk *talk, char type, struct wire_reader *reader, int64_t at_ns) {
    const struct postgres_step *step = talk->step_count > 0 ? step_at(talk, 0) : NULL;
    switch (type) {
    case '1': step_done(talk, STEP_PARSE); break;
    case '2': step_done(talk, STEP_BIND); break;
    case '3': step_done(talk, STEP_CLOSE); break;
    case 'V': step_done(talk, STEP_CALL); break;
    case 'n': step_done(talk, STEP_DESCRIBE); break;
    case 't':
        if (step && step->kind == STEP_DESCRIBE && step->prepared) prepared_types_read(step->prepared, reader);
        break;
    case 'T': row_description(talk, reader); break;
    case 'D': data_row(talk, reader); break;
    case 'C': statement_done(talk, wire_text(reader), at_ns); break;
    case 'I':
    case 's': statement_done(talk, (struct span){"", 0}, at_ns); break;
    case 'E': error_answer(talk, reader, at_ns); break;
    case 'G': copy_begin(talk); break;
    case 'Z': ready_answer(talk, (char)wire_number(reader, 1), at_ns); break;
    default: break; /* authentication, parameters, notices, notifications, data of COPY */
    }
}

void postgres_talk_answer(struct postgres_talk *talk, struct span message, int64_t at_ns) {
    struct wire_reader bytes = {message}, body;
    struct wire_moment moment = {talk->session->statements, at_ns, at_ns};
    /* The answer to a request for encryption: S or G, and the rest is; N, and the client goes on without. */
    if (!talk->has_started && message.length == 1) {
        if (message.bytes[0] != 'N') wire_session_deafen(talk->session, moment, "the session is encrypted");
        return;
    }
    for (char type; !talk->session->deaf && (type = typed_message(&bytes, &body));)
        typed_answer(talk, type, &body, at_ns);
    if (bytes.rest.length > 0 && !talk->session->deaf)
        wire_session_deafen(talk->session, moment, "an answer that is not of PostgreSQL's protocol");
}

/* --- the session --- */

struct postgres_talk *postgres_talk_begin(struct wire_session *session) {
    struct postgres_talk *talk = calloc(1, sizeof *talk);
    if (!talk) abort();
    talk->session = session;
    talk->isolation = session->recogniser->settings.isolation;
    struct short_text name = short_text_in(talk->database, sizeof talk->database);
    short_text_say(&name, "postgres");
    text_table_begin(&talk->prepared, PREPARED_MOST, prepared_drop);
    text_table_begin(&talk->portals, PREPARED_MOST, bound_drop);
    text_table_begin(&talk->transaction_locks, HELD_MOST, NULL);
    text_table_begin(&talk->session_locks, HELD_MOST, NULL);
    return talk;
}

void postgres_talk_end(struct postgres_talk *talk, int64_t at_ns) {
    transaction_end_session(talk, at_ns);
    while (talk->step_count > 0) step_drop(talk);
    for (int table = 0; table < SQL_TABLES; table++) named_rows_clear(&talk->rows[table]);
    text_table_clear(&talk->prepared);
    text_table_clear(&talk->portals);
    text_table_clear(&talk->transaction_locks);
    text_table_clear(&talk->session_locks);
    free(talk->steps);
    free(talk);
}
