/* Jepsen histories as EDN: a vector or list of maps, or one map after the other, with or without a tag
 * (`#jepsen.history.Op{...}`). The keys :type, :f, :process, :value, :error, :owner, :lock, :token, :fence, :ttl and
 * :time of a map are read (docs/linearizable.md explains them); any other key and its value - nested, tagged,
 * commented, discarded - is skipped. Operations of processes that are not numbers (:nemesis) are skipped, too. */
#include "checkers/formats/text.h"
#include "checkers/linearizability/linearizable.h"

#include <stdlib.h>
#include <string.h>

enum form_kind { FORM_NONE, FORM_NIL, FORM_NUMBER, FORM_KEYWORD, FORM_WORD, FORM_SEQUENCE, FORM_MAP, FORM_OTHER };

enum { ELEMENTS_KEPT = 2 };

/* What an event needs of a form. */
struct form {
    enum form_kind kind;
    bool has_token;    /* a map with :token or :fence, a number */
    bool only_numbers; /* a sequence of numbers and nils */
    int element_count;
    int64_t number, token, elements[ELEMENTS_KEPT];
    uint64_t offset;
    char word[TEXT_WORD]; /* without the colon; of a sequence, its first one; cut */
};

/* The forms in the map of an event. */
struct map {
    struct form type, f, process, value, error, owner, lock, token, ttl, time;
    uint64_t offset;
};

/* By byte: 1 blank, 2 ends a word. */
static const unsigned char CLASS[256] = {
    ['\t'] = 3, ['\n'] = 3, ['\v'] = 3, ['\f'] = 3, ['\r'] = 3, [' '] = 3, [','] = 3, ['('] = 2,
    [')'] = 2,  ['['] = 2,  [']'] = 2,  ['{'] = 2,  ['}'] = 2,  ['"'] = 2, [';'] = 2,
};

static inline bool is_space(int byte) {
    return byte != TEXT_END && CLASS[byte] & 1;
}

static inline bool ends_word(int byte) {
    return byte == TEXT_END || CLASS[byte];
}

/* --- words --- */

/* Up to what ends it; keeps the first TEXT_WORD - 1 bytes. */
static bool edn_word_read(struct text *text, char *word) {
    size_t used = 0;
    for (;;) {
        size_t at = text->at;
        for (; at < text->end && !CLASS[text->buffer[at]]; at++) {
            if (text->buffer[at] < ' ' || text->buffer[at] == 127) {
                text->at = at;
                return text_unexpected(text, "in a word");
            }
            if (word && used < TEXT_WORD - 1) word[used++] = (char)text->buffer[at];
        }
        text->at = at;
        if (at < text->end || !text_fill(text)) break;
    }
    if (word) word[used] = '\0';
    return text->error[0] == '\0';
}

/* After the opening quote. An escaped byte is kept as it stands: names need no more. */
static bool edn_string_read(struct text *text, char *word) {
    uint64_t begin = text_offset(text);
    size_t used = 0;
    for (int byte; (byte = text_next(text)) != '"';) {
        if (byte == '\\') byte = text_next(text);
        if (byte == TEXT_END) return text_fail(text, begin - 1, "a string that does not end");
        if (word && used < TEXT_WORD - 1) word[used++] = (char)byte;
    }
    if (word) word[used] = '\0';
    return true;
}

/* --- skipping --- */

static bool form_skip(struct text *text, int depth);

/* Skips blanks, comments and discarded forms. */
static bool edn_blanks(struct text *text, int depth) {
    for (int byte;;) {
        byte = text_peek(text);
        if (is_space(byte)) {
            text->at++;
        } else if (byte == ';') {
            while (byte != '\n' && byte != TEXT_END) byte = text_next(text);
        } else if (byte == '#' && text_peek_second(text) == '_') {
            text->at += 2;
            if (!form_skip(text, depth + 1)) return false;
        } else {
            return text->error[0] == '\0';
        }
    }
}

/* After the opening byte, past the closing one. A map's forms come in pairs. */
static bool skip_until(struct text *text, int closing, bool pairs, int depth) {
    uint64_t begin = text_offset(text) - 1;
    for (unsigned forms = 0;; forms++) {
        if (!edn_blanks(text, depth)) return false;
        if (text_peek(text) == TEXT_END) return text_fail(text, begin, "what begins here does not end");
        if (text_takes(text, closing))
            return !(pairs && forms % 2) || text_fail(text, begin, "a map with a key that has no value");
        if (!form_skip(text, depth + 1)) return false;
    }
}

/* After a '#' that does not discard. */
static bool skip_dispatch(struct text *text, int depth) {
    if (text_takes(text, '{')) return skip_until(text, '}', false, depth);
    if (text_takes(text, '"')) return edn_string_read(text, NULL);
    if (text_takes(text, '#')) return edn_word_read(text, NULL);
    if (is_space(text_peek(text))) return text_unexpected(text, "after #");
    return edn_word_read(text, NULL) && form_skip(text, depth + 1);
}

/* Past one form. */
static bool form_skip(struct text *text, int depth) {
    if (depth > TEXT_DEPTH) return text_fail(text, text_offset(text), "nested deeper than %d", TEXT_DEPTH);
    if (!edn_blanks(text, depth)) return false;
    switch (text_peek(text)) {
    case '(': text->at++; return skip_until(text, ')', false, depth);
    case '[': text->at++; return skip_until(text, ']', false, depth);
    case '{': text->at++; return skip_until(text, '}', true, depth);
    case '"': text->at++; return edn_string_read(text, NULL);
    case '#': text->at++; return skip_dispatch(text, depth);
    case '^': text->at++; return form_skip(text, depth + 1) && form_skip(text, depth + 1);
    case '\\':
        text->at++;
        if (text_next(text) == TEXT_END) return text_unexpected(text, "in a character");
        return edn_word_read(text, NULL);
    case ')':
    case ']':
    case '}':
    case TEXT_END: return text_unexpected(text, "where a value should be");
    default: return edn_word_read(text, NULL);
    }
}

/* --- keeping --- */

static bool edn_form_read(struct text *text, struct form *form, int depth);

static bool read_word(struct text *text, struct form *form) {
    if (!edn_word_read(text, form->word)) return false;
    if (form->word[0] == ':') {
        form->kind = FORM_KEYWORD;
        memmove(form->word, form->word + 1, strlen(form->word));
    } else if (strcmp(form->word, "nil") == 0) {
        form->kind = FORM_NIL;
    } else {
        form->kind = text_number(form->word, &form->number) ? FORM_NUMBER : FORM_WORD;
    }
    return true;
}

static bool read_sequence(struct text *text, struct form *form, int closing, int depth) {
    form->kind = FORM_SEQUENCE;
    form->only_numbers = true;
    for (;; form->element_count++) {
        struct form element;
        if (!edn_blanks(text, depth)) return false;
        if (text_takes(text, closing)) return true;
        if (text_peek(text) == TEXT_END) return text_fail(text, form->offset, "what begins here does not end");
        if (!edn_form_read(text, &element, depth + 1)) return false;
        if (form->element_count == 0) snprintf(form->word, sizeof form->word, "%s", element.word);
        if (element.kind != FORM_NUMBER && element.kind != FORM_NIL) form->only_numbers = false;
        if (form->element_count < ELEMENTS_KEPT)
            form->elements[form->element_count] = element.kind == FORM_NUMBER ? element.number : OPERATION_NIL;
    }
}

static bool read_map(struct text *text, struct form *form, int depth) {
    form->kind = FORM_MAP;
    for (;;) {
        struct form key, value;
        if (!edn_blanks(text, depth)) return false;
        if (text_takes(text, '}')) return true;
        if (text_peek(text) == TEXT_END) return text_fail(text, form->offset, "what begins here does not end");
        if (!edn_form_read(text, &key, depth + 1) || !edn_form_read(text, &value, depth + 1)) return false;
        bool token = key.kind == FORM_KEYWORD && (strcmp(key.word, "token") == 0 || strcmp(key.word, "fence") == 0);
        if (!token || value.kind != FORM_NUMBER) continue;
        form->has_token = true;
        form->token = value.number;
    }
}

/* Reads one form; what is nested deeper than twice is skipped. */
static bool edn_form_read(struct text *text, struct form *form, int depth) {
    if (!edn_blanks(text, depth)) return false;
    form->kind = FORM_OTHER;
    form->has_token = form->only_numbers = false;
    form->element_count = 0;
    form->word[0] = '\0';
    form->offset = text_offset(text);
    bool nested = depth > 2;
    if (text_takes(text, '"')) return edn_string_read(text, form->word);
    if (!nested && text_takes(text, '[')) return read_sequence(text, form, ']', depth);
    if (!nested && text_takes(text, '(')) return read_sequence(text, form, ')', depth);
    if (!nested && text_takes(text, '{')) return read_map(text, form, depth);
    int byte = text_peek(text);
    if (byte == '#' || byte == '^' || byte == '\\' || ends_word(byte)) return form_skip(text, depth);
    return read_word(text, form);
}

/* --- events --- */

static struct form *map_place(struct map *map, const struct form *key) {
    static const char *const names[] = {"type", "f",     "process", "value", "error", "owner",
                                        "lock", "token", "fence",   "ttl",   "time"};
    struct form *const places[] = {&map->type, &map->f,     &map->process, &map->value, &map->error, &map->owner,
                                   &map->lock, &map->token, &map->token,   &map->ttl,   &map->time};
    if (key->kind != FORM_KEYWORD) return NULL;
    for (size_t each = 0; each < sizeof places / sizeof places[0]; each++)
        if (names[each][0] == key->word[0] && strcmp(key->word, names[each]) == 0) return places[each];
    return NULL;
}

/* After the opening brace. */
static bool map_read(struct text *text, struct map *map) {
    map->type.kind = map->f.kind = map->process.kind = map->value.kind = FORM_NONE;
    map->error.kind = map->owner.kind = map->lock.kind = map->token.kind = FORM_NONE;
    map->ttl.kind = map->time.kind = FORM_NONE;
    map->offset = text_offset(text) - 1;
    for (;;) {
        struct form key;
        if (!edn_blanks(text, 1)) return false;
        if (text_takes(text, '}')) return true;
        if (text_peek(text) == TEXT_END) return text_fail(text, map->offset, "a map that does not end");
        if (!edn_form_read(text, &key, 2)) return false;
        struct form *place = map_place(map, &key);
        if (!edn_blanks(text, 1)) return false;
        if (text_peek(text) == '}') return text_fail(text, key.offset, "a key that has no value");
        if (place && place->kind != FORM_NONE) return text_fail(text, key.offset, ":%s stands twice", key.word);
        if (place ? !edn_form_read(text, place, 2) : !form_skip(text, 2)) return false;
    }
}

static bool map_type(struct text *text, const struct map *map, enum event_type *type) {
    int place = map->type.kind == FORM_KEYWORD ? text_place(map->type.word, EVENT_TYPE) : -1;
    *type = (enum event_type)place;
    if (place >= 0) return true;
    if (map->type.kind == FORM_NONE) return text_fail(text, map->offset, "a map without :type is no operation");
    return text_fail(text, map->type.offset, ":type must be :invoke, :ok, :fail or :info");
}

static bool map_kind(struct text *text, const struct map *map, enum operation_kind *kind) {
    static const struct {
        const char *word;
        enum operation_kind kind;
    } names[] = {{"acquire", OPERATION_ACQUIRE}, {"lock", OPERATION_ACQUIRE}, {"release", OPERATION_RELEASE},
                 {"unlock", OPERATION_RELEASE},  {"renew", OPERATION_RENEW},  {"refresh", OPERATION_RENEW},
                 {"read", OPERATION_READ},       {"write", OPERATION_WRITE},  {"cas", OPERATION_CAS}};
    for (size_t each = 0; each < sizeof names / sizeof names[0] && map->f.kind == FORM_KEYWORD; each++)
        if (strcmp(map->f.word, names[each].word) == 0) {
            *kind = names[each].kind;
            return true;
        }
    if (map->f.kind == FORM_NONE) return text_fail(text, map->offset, "a map without :f is no operation");
    return text_fail(text, map->f.offset, ":f must be :acquire, :release, :renew, :read, :write or :cas");
}

/* What was read, written or compared, or the token of a grant. */
static bool map_value(struct text *text, const struct map *map, struct operation_event *event) {
    const struct form *value = &map->value;
    event->value = event->from = OPERATION_NIL;
    event->has_value = value->kind == FORM_NUMBER || value->kind == FORM_SEQUENCE;
    if (event->kind == OPERATION_ACQUIRE || event->kind == OPERATION_RENEW) {
        if (map->token.kind == FORM_NUMBER) event->value = map->token.number;
        else if (value->kind == FORM_NUMBER) event->value = value->number;
        else if (value->kind == FORM_MAP && value->has_token) event->value = value->token;
        event->has_value = event->type == EVENT_OK;
    } else if (event->kind == OPERATION_CAS) {
        if (event->type != EVENT_INVOKE && !event->has_value) return true;
        if (value->kind != FORM_SEQUENCE || !value->only_numbers || value->element_count != 2)
            return text_fail(text, map->offset, "the :value of a :cas must be a vector of two numbers");
        event->from = value->elements[0];
        event->value = value->elements[1];
    } else if (event->kind == OPERATION_READ || event->kind == OPERATION_WRITE) {
        bool nil = value->kind == FORM_NIL || value->kind == FORM_NONE;
        if (!nil && value->kind != FORM_NUMBER)
            return text_fail(text, value->offset, "the :value of a :%s must be a number in 64 bits or nil",
                             map->f.word);
        if (!nil) event->value = value->number;
        event->has_value = event->kind == OPERATION_READ ? event->type == EVENT_OK : event->has_value;
    } else {
        event->has_value = false;
    }
    if (event->value == OPERATION_NIL && value->kind == FORM_NUMBER && event->has_value)
        return text_fail(text, value->offset, "the one number that stands for nil here");
    return true;
}

/* The name of an owner or a lock: a keyword, string, symbol or number. Not one that may have been cut. */
static bool map_name(struct text *text, const struct form *form, const char *key) {
    bool names = form->kind != FORM_NIL && form->word[0] && strlen(form->word) < TEXT_WORD - 2; /* a colon is gone */
    return names || text_fail(text, form->offset, "%s must be a name of less than %d bytes", key, TEXT_WORD - 2);
}

/* The name lives as long as the map. */
static bool map_owner(struct text *text, const struct map *map, struct operation_event *event) {
    if (map->owner.kind == FORM_NONE) return true;
    event->owned = true;
    if (map->owner.kind == FORM_NUMBER) event->owner_number = map->owner.number;
    else event->owner = map->owner.word;
    return map->owner.kind == FORM_NUMBER || map_name(text, &map->owner, ":owner");
}

/* When it happened, in ns as Jepsen has it, and how long the lease is, in ms. */
static bool map_time(struct text *text, const struct map *map, struct operation_event *event) {
    event->timed = map->time.kind == FORM_NUMBER;
    event->time_ns = event->timed ? map->time.number : 0;
    if (map->ttl.kind == FORM_NONE || map->ttl.kind == FORM_NIL) return true;
    if (map->ttl.kind != FORM_NUMBER || map->ttl.number <= 0 || map->ttl.number > INT64_MAX / CHECK_NS_PER_MS)
        return text_fail(text, map->ttl.offset, ":ttl must be the length of a lease, in milliseconds");
    event->ttl_ns = map->ttl.number * CHECK_NS_PER_MS;
    return true;
}

/* ":timeout", "timed out", [:timed-out ...] */
static bool says_timeout(const struct form *error) {
    if (error->kind == FORM_NONE) return false;
    return strstr(error->word, "timeout") || strstr(error->word, "timed-out") || strstr(error->word, "timed out");
}

static enum parse_result map_take(struct text *text, struct operations *operations, const struct map *map,
                                  uint32_t number) {
    struct operation_event event = {.at = number};
    enum event_type type = EVENT_INVOKE;
    if (!map_type(text, map, &type)) return PARSE_BAD;
    if (map->process.kind == FORM_NONE) return text_bad(text, map->offset, "a map without :process is no operation");
    if (map->process.kind != FORM_NUMBER) return PARSE_DONE; /* the nemesis */
    if (!map_kind(text, map, &event.kind)) return PARSE_BAD;
    event.type = type;
    event.process = map->process.number;
    if (!map_owner(text, map, &event) || !map_time(text, map, &event)) return PARSE_BAD;
    if (map->lock.kind != FORM_NONE && map->lock.kind != FORM_NIL) {
        if (!map_name(text, &map->lock, ":lock")) return PARSE_BAD;
        event.object = map->lock.word;
    }
    if (!map_value(text, map, &event)) return PARSE_BAD;
    /* The outcome of an acquire that says that it timed out is unknown. */
    if (type == EVENT_FAIL && event.kind == OPERATION_ACQUIRE && says_timeout(&map->error)) event.type = EVENT_UNKNOWN;
    return text_event(text, operations, &event, map->offset);
}

/* Goes to the next map of an event, past its tag. *found: there is one. `closing` ends the sequence around it. */
static bool next_map(struct text *text, int *closing, bool *found) {
    *found = false;
    for (;;) {
        if (!edn_blanks(text, 0)) return false;
        int byte = text_peek(text);
        if (byte == TEXT_END && *closing)
            return text_fail(text, text_offset(text), "the file ends before '%c'", *closing);
        if (byte == TEXT_END) return true;
        if (text_takes(text, '{')) return *found = true;
        if (byte == '#' && text_peek_second(text) != '{' && text_peek_second(text) != '"') {
            text->at++;
            if (ends_word(text_peek(text))) return text_unexpected(text, "after #");
            if (!edn_word_read(text, NULL)) return false;
        } else if (*closing && text_takes(text, *closing)) {
            *closing = 0;
        } else if (!*closing && (byte == '[' || byte == '(')) {
            text->at++;
            *closing = byte == '[' ? ']' : ')';
        } else {
            return text_unexpected(text, "where the map of an operation should be");
        }
    }
}

enum parse_result edn_read(struct text *text, struct operations *operations) {
    struct map map;
    int closing = 0;
    bool found;
    for (uint32_t number = 0;; number++) {
        if (!next_map(text, &closing, &found)) return PARSE_BAD;
        if (!found) return PARSE_DONE;
        if (!map_read(text, &map)) return PARSE_BAD;
        enum parse_result result = map_take(text, operations, &map, number);
        if (result != PARSE_DONE) return result;
    }
}
