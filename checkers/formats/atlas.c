/* Lock, refresh and unlock with leases as JSON, as the Jepsen tests of Palantir's AtlasDB log them: an array of
 * objects, or one object after the other, with "type" (invoke, ok, fail, info), "f" (lock, refresh, unlock), "process"
 * and "value". The value of an invocation is the name of the lock; that of an answer is the token, "true" or "false",
 * and an empty one means no. Other keys are skipped, and so are objects whose process is not a number.
 * docs/linearizable.md says how they are judged. */
#include "checkers/formats/text.h"

#include <string.h>

enum value_kind { VALUE_NONE, VALUE_NULL, VALUE_TRUE, VALUE_FALSE, VALUE_NUMBER, VALUE_STRING, VALUE_NESTED };

enum { CLOSED = 1 };

struct value {
    enum value_kind kind;
    bool whole; /* a number in 64 bits without fraction or exponent */
    int64_t number;
    uint64_t offset;
    char word[TEXT_WORD]; /* of a string; escapes are kept as written; cut */
};

struct object_read {
    struct value type, f, process, value;
    uint64_t offset;
};

static bool atlas_blanks(struct text *text) {
    for (int byte; byte = text_peek(text), byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';) text->at++;
    return text->error[0] == '\0';
}

/* After the opening quote; `word` may be NULL. */
static bool atlas_string_read(struct text *text, char *word) {
    uint64_t begin = text_offset(text) - 1;
    size_t used = 0;
    for (int byte; (byte = text_next(text)) != '"';) {
        if (byte == TEXT_END) return text_fail(text, begin, "a string that does not end");
        if (byte < ' ') return text_fail(text, text_offset(text) - 1, "byte 0x%02x in a string", (unsigned)byte);
        if (word && used < TEXT_WORD - 1) word[used++] = (char)byte;
        if (byte != '\\') continue;
        byte = text_next(text);
        if (byte == TEXT_END || byte == 0 || !strchr("\"\\/bfnrtu", byte))
            return text_fail(text, text_offset(text) - 1, "an escape that JSON does not have");
        if (word && used < TEXT_WORD - 1) word[used++] = (char)byte;
    }
    if (word) word[used] = '\0';
    return true;
}

/* A number or one of three words. */
static bool atlas_word_read(struct text *text, struct value *value) {
    size_t used = 0;
    for (int byte; byte = text_peek(text), (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                                               byte == '-' || byte == '+' || byte == '.' || byte == 'E';
         text->at++)
        if (used < TEXT_WORD - 1) value->word[used++] = (char)byte;
    value->word[used] = '\0';
    bool digits = used > 0 && strspn(value->word, "0123456789+-.eE") == used;
    if (strcmp(value->word, "null") == 0) value->kind = VALUE_NULL;
    else if (strcmp(value->word, "true") == 0) value->kind = VALUE_TRUE;
    else if (strcmp(value->word, "false") == 0) value->kind = VALUE_FALSE;
    else if (digits && value->word[0] != '+' && value->word[0] != '.') value->kind = VALUE_NUMBER;
    else if (used == 0) return text_unexpected(text, "where a value should be");
    else return text_fail(text, value->offset, "not a value of JSON: %.40s", value->word);
    value->whole = value->kind == VALUE_NUMBER && text_number(value->word, &value->number);
    return true;
}

static bool value_read(struct text *text, struct value *value, int depth);

/* "key" and the colon behind it. */
static bool key_read(struct text *text, char *key) {
    if (!atlas_blanks(text)) return false;
    if (!text_takes(text, '"')) return text_unexpected(text, "where a key should be");
    if (!atlas_string_read(text, key) || !atlas_blanks(text)) return false;
    return text_takes(text, ':') || text_unexpected(text, "where a ':' should be");
}

/* After a value: a comma (*more) or the closing byte. */
static bool more_follows(struct text *text, int closing, bool *more) {
    if (!atlas_blanks(text)) return false;
    *more = text_takes(text, ',');
    return *more || text_takes(text, closing) || text_unexpected(text, "where a ',' or the end should be");
}

/* After the opening byte, past the closing one. */
static bool nested_skip(struct text *text, int closing, int depth) {
    struct value value;
    if (depth > TEXT_DEPTH) return text_fail(text, text_offset(text), "nested deeper than %d", TEXT_DEPTH);
    if (!atlas_blanks(text)) return false;
    if (text_takes(text, closing)) return true;
    for (bool more = true; more;) {
        if (closing == '}' && !key_read(text, NULL)) return false;
        if (!value_read(text, &value, depth) || !more_follows(text, closing, &more)) return false;
    }
    return true;
}

static bool value_read(struct text *text, struct value *value, int depth) {
    if (!atlas_blanks(text)) return false;
    value->offset = text_offset(text);
    value->kind = VALUE_STRING;
    if (text_takes(text, '"')) return atlas_string_read(text, value->word);
    value->kind = VALUE_NESTED;
    if (text_takes(text, '{')) return nested_skip(text, '}', depth + 1);
    if (text_takes(text, '[')) return nested_skip(text, ']', depth + 1);
    return atlas_word_read(text, value);
}

static struct value *object_place(struct object_read *object, const char *key) {
    if (strcmp(key, "type") == 0) return &object->type;
    if (strcmp(key, "f") == 0) return &object->f;
    if (strcmp(key, "process") == 0) return &object->process;
    return strcmp(key, "value") == 0 ? &object->value : NULL;
}

/* After the opening brace. */
static bool object_read(struct text *text, struct object_read *object) {
    char key[TEXT_WORD];
    struct value other;
    object->offset = text_offset(text) - 1;
    object->type.kind = object->f.kind = object->process.kind = object->value.kind = VALUE_NONE;
    if (!atlas_blanks(text)) return false;
    if (text_takes(text, '}')) return true;
    for (bool more = true; more;) {
        if (!atlas_blanks(text)) return false;
        uint64_t offset = text_offset(text);
        if (!key_read(text, key)) return false;
        struct value *place = object_place(object, key);
        if (place && place->kind != VALUE_NONE) return text_fail(text, offset, "\"%s\" stands twice", key);
        if (!value_read(text, place ? place : &other, 1) || !more_follows(text, '}', &more)) return false;
    }
    return true;
}

/* --- events --- */

/* The server's answer: an empty string or "false" means no. */
static bool says_yes(const struct value *value) {
    if (value->kind == VALUE_STRING) return value->word[0] && strcmp(value->word, "false") != 0;
    return value->kind == VALUE_TRUE || value->kind == VALUE_NUMBER || value->kind == VALUE_NESTED;
}

static enum parse_result object_take(struct text *text, struct operations *operations, const struct object_read *object,
                                     uint32_t number) {
    static const char *const kinds[] = {"lock", "unlock", "refresh", NULL};
    struct operation_event event = {.at = number, .value = OPERATION_NIL, .from = OPERATION_NIL};
    int type = object->type.kind == VALUE_STRING ? text_place(object->type.word, EVENT_TYPE) : -1;
    int kind = object->f.kind == VALUE_STRING ? text_place(object->f.word, kinds) : -1;
    if (type < 0) return text_bad(text, object->offset, "\"type\" must be invoke, ok, fail or info");
    if (object->process.kind == VALUE_NONE)
        return text_bad(text, object->offset, "an object without \"process\" is no operation");
    if (object->process.kind != VALUE_NUMBER) return PARSE_DONE; /* the nemesis */
    if (!object->process.whole) return text_bad(text, object->process.offset, "\"process\" must be a whole number");
    if (kind < 0) return text_bad(text, object->offset, "\"f\" must be lock, refresh or unlock");
    event.process = object->process.number;
    event.kind = kind == 0 ? OPERATION_ACQUIRE : kind == 1 ? OPERATION_RELEASE : OPERATION_RENEW;
    event.type = (enum event_type)type;
    if (event.type == EVENT_INVOKE) {
        if (object->value.kind != VALUE_STRING || !object->value.word[0])
            return text_bad(text, object->offset, "the \"value\" of an invocation must name a lock");
        if (strlen(object->value.word) == TEXT_WORD - 1)
            return text_bad(text, object->value.offset, "a lock's name must have less than %d bytes", TEXT_WORD - 1);
        event.object = object->value.word;
    }
    if (event.type == EVENT_OK && !says_yes(&object->value)) event.type = EVENT_FAIL;
    else if (event.type == EVENT_FAIL) event.type = EVENT_UNKNOWN; /* AtlasDB logs any exception so, a timeout too */
    return text_event(text, operations, &event, object->offset);
}

/* Goes to the next object. `closing` ends the array around it; 0: no array, CLOSED: it has ended. */
static bool next_object(struct text *text, uint32_t number, int *closing, bool *found) {
    *found = false;
    if (!atlas_blanks(text)) return false;
    if (number == 0 && text_takes(text, '[')) {
        *closing = ']';
        if (!atlas_blanks(text)) return false;
        if (text_takes(text, ']')) *closing = CLOSED;
    } else if (*closing) {
        bool more;
        if (!more_follows(text, ']', &more)) return false;
        if (!more) *closing = CLOSED;
    }
    if (!atlas_blanks(text)) return false;
    if (text_peek(text) == TEXT_END && *closing != ']') return true;
    *found = *closing != CLOSED && text_takes(text, '{');
    return *found || text_unexpected(text, "where the object of an operation should be");
}

enum parse_result atlas_read(struct text *text, struct operations *operations) {
    int closing = 0;
    bool found;
    for (uint32_t number = 0;; number++) {
        struct object_read object;
        if (!next_object(text, number, &closing, &found)) return PARSE_BAD;
        if (!found) return PARSE_DONE;
        if (!object_read(text, &object)) return PARSE_BAD;
        enum parse_result result = object_take(text, operations, &object, number);
        if (result != PARSE_DONE) return result;
    }
}
