#include "faults/proxy/resp.h"

#include <string.h>
#include <strings.h>

enum { AT_START, AT_TYPE, AT_NUMBER, AT_NUMBER_END, AT_PAYLOAD, AT_PAYLOAD_END, AT_LINE_END, AT_LINE, AT_INLINE };

/* The limit on the digits of a length or count: no sum of them overflows before elements run out. */
enum { DIGITS_MAX = 15 };
static const int64_t PENDING_MAX = INT64_MAX / 4;

enum scan_result { SCAN_ON, SCAN_WHOLE, SCAN_BROKEN };

bool span_is(struct span span, const char *text) {
    return span.length == strlen(text) && memcmp(span.bytes, text, span.length) == 0;
}

bool span_is_word(struct span span, const char *text) {
    return span.length == strlen(text) && strncasecmp(span.bytes, text, span.length) == 0;
}

void resp_start(struct resp_scanner *scanner, enum resp_side side) {
    memset(scanner, 0, sizeof *scanner);
    scanner->side = (uint8_t)side;
}

bool resp_is_between(const struct resp_scanner *scanner) {
    return scanner->state == AT_START;
}

uint64_t resp_announced_bytes(const struct resp_scanner *scanner) {
    bool inside = scanner->state == AT_PAYLOAD;
    return scanner->length + (inside ? (uint64_t)scanner->payload + 2 : 0);
}

bool resp_word_is(const struct resp_word *word, const char *text) {
    if (word->length == 0) return *text == '\0';
    if ((word->bytes[0] ^ text[0]) & ~0x20) return false; /* the quick answer for most words */
    size_t length = strlen(text);
    return word->length == length && strncasecmp(word->bytes, text, length) == 0;
}

static void word_add(struct resp_scanner *scanner, const char *bytes, size_t length) {
    if (scanner->word >= RESP_WORDS) return;
    struct resp_word *word = &scanner->words[scanner->word];
    if (length > RESP_WORD || word->length + length > RESP_WORD) {
        word->length = RESP_WORD + 1;
        return;
    }
    memcpy(word->bytes + word->length, bytes, length);
    word->length = (uint8_t)(word->length + length);
}

/* Words are taken while everything before them was a single value of the outermost aggregate. */
static void word_end(struct resp_scanner *scanner) {
    if (scanner->word < RESP_WORDS) scanner->word++;
}

/* Whether the next value is the message's own: neither a part of it nor of its attributes. */
static bool is_outermost(const struct resp_scanner *scanner) {
    return scanner->type == '\0' && scanner->pending == 1;
}

static void words_begin(struct resp_scanner *scanner) {
    scanner->word = 0;
    for (int each = 0; each < RESP_WORDS; each++) scanner->words[each].length = 0;
}

static enum scan_result element_end(struct resp_scanner *scanner) {
    scanner->state = AT_TYPE;
    if (--scanner->pending == 0) {
        scanner->state = AT_START;
        return SCAN_WHOLE;
    }
    return SCAN_ON;
}

static enum scan_result aggregate_begin(struct resp_scanner *scanner, bool outermost) {
    int64_t count = scanner->number < 0 ? 0 : scanner->number;
    bool pairs = scanner->element_type == '%' || scanner->element_type == '|';
    scanner->pending += pairs ? 2 * count : count;
    if (scanner->pending > PENDING_MAX) return SCAN_BROKEN;
    if (outermost && scanner->element_type != '|') {
        scanner->elements = count;
        if (scanner->element_type == '*' || scanner->element_type == '>') words_begin(scanner);
    } else {
        scanner->word = RESP_WORDS;
    }
    if (scanner->element_type != '|') return element_end(scanner);
    scanner->state = AT_TYPE; /* the value that it describes is still to come */
    return SCAN_ON;
}

/* A length or count is known. */
static enum scan_result number_end(struct resp_scanner *scanner) {
    if (scanner->negative) scanner->number = -scanner->number;
    bool outermost = is_outermost(scanner);
    if (outermost && scanner->element_type != '|') scanner->type = scanner->element_type;
    bool bulk = scanner->element_type == '$' || scanner->element_type == '!' || scanner->element_type == '=';
    if (scanner->number < -1 || (scanner->side == RESP_REQUESTS && bulk && scanner->number < 0)) return SCAN_BROKEN;
    if (!bulk) return aggregate_begin(scanner, outermost);
    if (scanner->number < 0) {
        word_end(scanner);
        return element_end(scanner);
    }
    scanner->payload = scanner->number;
    scanner->state = scanner->payload ? AT_PAYLOAD : AT_PAYLOAD_END;
    scanner->carriage = false;
    return SCAN_ON;
}

static enum scan_result scan_number(struct resp_scanner *scanner, const char **at, const char *end) {
    while (*at < end) {
        char byte = *(*at)++;
        if (byte >= '0' && byte <= '9' && scanner->digits < DIGITS_MAX) {
            scanner->number = scanner->number * 10 + (byte - '0');
            scanner->digits++;
        } else if (byte == '\r' && scanner->digits) {
            scanner->state = AT_NUMBER_END;
            return SCAN_ON;
        } else if (byte == '-' && !scanner->digits && !scanner->negative) {
            scanner->negative = true;
        } else {
            return SCAN_BROKEN;
        }
    }
    return SCAN_ON;
}

static enum scan_result scan_payload(struct resp_scanner *scanner, const char **at, const char *end) {
    size_t there = (size_t)(end - *at);
    size_t length = (uint64_t)scanner->payload < there ? (size_t)scanner->payload : there;
    word_add(scanner, *at, length);
    *at += length;
    scanner->payload -= (int64_t)length;
    if (scanner->payload == 0) scanner->state = AT_PAYLOAD_END;
    return SCAN_ON;
}

static enum scan_result scan_payload_end(struct resp_scanner *scanner, const char **at) {
    char byte = *(*at)++;
    if (byte != (scanner->carriage ? '\n' : '\r')) return SCAN_BROKEN;
    if (!scanner->carriage) {
        scanner->carriage = true;
        return SCAN_ON;
    }
    word_end(scanner);
    return element_end(scanner);
}

/* A single value ends with \r\n; a lone \r or \n is part of it. Whether a \r is alone is known with the next byte. */
static enum scan_result scan_line(struct resp_scanner *scanner, const char **at, const char *end) {
    const char *start = *at, *newline = memchr(start, '\n', (size_t)(end - start));
    const char *stop = newline ? newline : end;
    if (scanner->carriage && start != newline) word_add(scanner, "\r", 1);
    bool carriage = stop > start ? stop[-1] == '\r' : scanner->carriage;
    if (stop > start) word_add(scanner, start, (size_t)(stop - start) - carriage);
    *at = newline ? newline + 1 : end;
    scanner->carriage = carriage && !newline;
    if (!newline) return SCAN_ON;
    if (!carriage) {
        word_add(scanner, "\n", 1);
        return SCAN_ON;
    }
    word_end(scanner);
    return element_end(scanner);
}

/* An inline command ends with \n; blanks separate its words. */
static enum scan_result scan_inline(struct resp_scanner *scanner, const char **at, const char *end) {
    while (*at < end) {
        char byte = *(*at)++;
        bool blank = byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
        if (!blank) {
            if (!scanner->carriage) scanner->elements++;
            word_add(scanner, &byte, 1);
        } else if (scanner->carriage) {
            word_end(scanner);
        }
        scanner->carriage = !blank; /* here: inside a word */
        if (byte == '\n') return element_end(scanner);
    }
    return SCAN_ON;
}

static void message_begin(struct resp_scanner *scanner) {
    scanner->type = '\0';
    scanner->pending = 1;
    scanner->elements = 0;
    scanner->length = scanner->lead = 0;
    scanner->word = RESP_WORDS; /* until an array or a push begins */
    scanner->words[0].length = scanner->words[1].length = scanner->words[2].length = 0;
}

static enum scan_result scan_type(struct resp_scanner *scanner, const char **at) {
    bool requests = scanner->side == RESP_REQUESTS, first = is_outermost(scanner);
    char type = **at;
    scanner->carriage = false;
    if (requests && first && type != '*') {
        scanner->type = 'i';
        scanner->state = AT_INLINE;
        words_begin(scanner);
        return SCAN_ON;
    }
    (*at)++;
    if (requests && !first && type != '$') return SCAN_BROKEN;
    scanner->element_type = type;
    if (type != '\0' && strchr("*$%~>|!=", type)) {
        scanner->number = scanner->digits = 0;
        scanner->negative = false;
        scanner->state = AT_NUMBER;
        return SCAN_ON;
    }
    if (type == '\0' || !strchr("+-:,#(_", type)) return SCAN_BROKEN;
    if (first) scanner->type = type;
    scanner->state = AT_LINE;
    return SCAN_ON;
}

static enum scan_result scan_state(struct resp_scanner *scanner, const char **at, const char *end) {
    switch (scanner->state) {
    case AT_TYPE: return scan_type(scanner, at);
    case AT_NUMBER: return scan_number(scanner, at, end);
    case AT_NUMBER_END: return *(*at)++ == '\n' ? number_end(scanner) : SCAN_BROKEN;
    case AT_PAYLOAD: return scan_payload(scanner, at, end);
    case AT_PAYLOAD_END: return scan_payload_end(scanner, at);
    case AT_LINE: return scan_line(scanner, at, end);
    default: return scan_inline(scanner, at, end);
    }
}

/* Parses the number of a header that is completely there; returns what follows it, NULL: scan it byte by byte. */
static inline const char *number_at_once(const char *at, const char *end, int64_t *number) {
    if (end - at >= 3 && at[0] >= '0' && at[0] <= '9' && at[1] == '\r' && at[2] == '\n') { /* nearly always */
        *number = at[0] - '0';
        return at + 3;
    }
    *number = 0;
    if (at == end || *at < '0' || *at > '9') return NULL;
    for (int digits = 0; at < end && *at >= '0' && *at <= '9'; at++) {
        if (++digits > DIGITS_MAX) return NULL;
        *number = *number * 10 + (*at - '0');
    }
    return end - at >= 2 && at[0] == '\r' && at[1] == '\n' ? at + 2 : NULL;
}

/* Where enough bytes follow, a copy of fixed size is faster than one of the exact size. */
static void word_set(struct resp_word *word, const char *bytes, size_t length, const char *end) {
    word->length = (uint8_t)(length <= RESP_WORD ? length : RESP_WORD + 1);
    if (end - bytes >= RESP_WORD) memcpy(word->bytes, bytes, RESP_WORD);
    else memcpy(word->bytes, bytes, length <= RESP_WORD ? length : 0);
}

/* The fast path: nearly all messages are a bulk string or an array of them and completely there, so no state is kept
 * between their bytes. Returns where the message ends; NULL: it is another kind of message, and none of it was used. */
static const char *message_at_once(struct resp_scanner *scanner, const char *at, const char *end) {
    bool array = *at == '*';
    int64_t count = 1, number;
    scanner->type = *at;
    if (array) at = number_at_once(at + 1, end, &count);
    else if (*at != '$' || scanner->side == RESP_REQUESTS) return NULL;
    if (!at || count == 0) return NULL;
    scanner->elements = array ? count : 0;
    for (int64_t each = 0; each < count; each++) {
        if (at == end || *at != '$') return NULL;
        const char *payload = number_at_once(at + 1, end, &number);
        if (!payload || end - payload < number + 2 || payload[number] != '\r' || payload[number + 1] != '\n')
            return NULL;
        if (array && each < RESP_WORDS) word_set(&scanner->words[each], payload, (size_t)number, end);
        at = payload + number + 2;
    }
    return at;
}

enum resp_result resp_scan(struct resp_scanner *scanner, const char *bytes, size_t length, size_t *used) {
    const char *at = bytes, *end = bytes + length;
    enum scan_result result = SCAN_ON;
    if (scanner->state == AT_START && length) {
        message_begin(scanner);
        at = message_at_once(scanner, bytes, end);
        if (at) {
            *used = scanner->length = (size_t)(at - bytes);
            return RESP_WHOLE;
        }
        message_begin(scanner);
        scanner->state = AT_TYPE;
        at = bytes;
    }
    uint64_t before = scanner->length;
    while (at < end && result == SCAN_ON) {
        /* An attribute has been read to its end: now comes what it describes. */
        if (scanner->state == AT_TYPE && is_outermost(scanner)) scanner->lead = before + (uint64_t)(at - bytes);
        result = scan_state(scanner, &at, end);
    }
    *used = (size_t)(at - bytes);
    scanner->length = before + *used;
    if (result == SCAN_BROKEN) return RESP_BROKEN;
    return result == SCAN_WHOLE ? RESP_WHOLE : RESP_MORE;
}

struct resp_cursor resp_elements(const struct resp_scanner *scanner, struct span head) {
    struct resp_cursor cursor = {.at = head.bytes, .end = head.bytes + head.length, .left = scanner->elements};
    cursor.is_inline = scanner->type == 'i';
    if (cursor.is_inline) return cursor;
    const char *newline = NULL;
    if (scanner->lead < head.length && (scanner->type == '*' || scanner->type == '>'))
        newline = memchr(cursor.at + scanner->lead, '\n', head.length - scanner->lead);
    if (newline) cursor.at = newline + 1;
    else cursor.left = 0;
    return cursor;
}

static bool next_inline(struct resp_cursor *cursor, struct span *element) {
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) && *cursor->at) cursor->at++;
    element->bytes = cursor->at;
    while (cursor->at < cursor->end && (!*cursor->at || !strchr(" \t\r\n", *cursor->at))) cursor->at++;
    element->length = (size_t)(cursor->at - element->bytes);
    return cursor->at < cursor->end; /* a word ends with a blank */
}

/* The scanner has accepted these digits before. */
static int64_t bulk_length(const char *digits, const char *newline) {
    int64_t length = 0;
    if (*digits == '-') return -1;
    for (; digits < newline && *digits != '\r'; digits++) length = length * 10 + (*digits - '0');
    return length;
}

bool resp_next(struct resp_cursor *cursor, struct span *element) {
    if (cursor->left <= 0) return false;
    cursor->left--;
    if (cursor->is_inline) return next_inline(cursor, element);
    const char *type = cursor->at;
    const char *newline = type < cursor->end ? memchr(type, '\n', (size_t)(cursor->end - type)) : NULL;
    if (!newline || strchr("*%~>|", *type)) return false;
    if (!strchr("$!=", *type)) {
        while (newline && newline[-1] != '\r') newline = memchr(newline + 1, '\n', (size_t)(cursor->end - newline - 1));
        if (!newline) return false;
        *element = (struct span){type + 1, (size_t)(newline - 1 - (type + 1))};
        cursor->at = newline + 1;
        return true;
    }
    int64_t length = bulk_length(type + 1, newline);
    *element = (struct span){newline + 1, length < 0 ? 0 : (size_t)length};
    size_t needed = length < 0 ? 0 : (size_t)length + 2;
    if ((size_t)(cursor->end - (newline + 1)) < needed) return false;
    cursor->at = newline + 1 + needed;
    return true;
}
