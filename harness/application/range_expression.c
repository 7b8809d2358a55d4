#include "harness/application/range_expression.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values are kept so small that sums and products of two cannot overflow. */
#define VALUE_MOST INT64_C(1000000000)
enum { DEPTH_MOST = 64 };

struct parser {
    const char *text, *at;
    range_named *named;
    const void *asked;
    char *reason;
    int depth;
};

static bool expression_read(struct parser *parser, struct range *value);

static bool expression_fails(struct parser *parser, const char *expected) {
    if (!parser->reason[0])
        snprintf(parser->reason, RANGE_REASON, "at letter %td of '%.80s': %s", parser->at - parser->text + 1,
                 parser->text, expected);
    return false;
}

static char next_sign(struct parser *parser) {
    while (isspace((unsigned char)*parser->at)) parser->at++;
    return *parser->at;
}

static bool sign_take(struct parser *parser, char sign) {
    if (next_sign(parser) != sign) return false;
    parser->at++;
    return true;
}

static bool is_small(struct parser *parser, struct range value) {
    return (value.low >= -VALUE_MOST && value.high <= VALUE_MOST) ||
           expression_fails(parser, "values are at most 10^9");
}

static bool constant_read(struct parser *parser, struct range *value) {
    char *end;
    errno = 0;
    long long number = strtoll(parser->at, &end, 10);
    if (errno != 0) return expression_fails(parser, "values are at most 10^9");
    parser->at = end;
    *value = (struct range){number, number};
    return is_small(parser, *value);
}

static size_t word_length(const char *at) {
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_' || at[length] == '.') length++;
    return length;
}

static bool two_read(struct parser *parser, bool least, struct range *value) {
    struct range one, other;
    if (!sign_take(parser, '(')) return expression_fails(parser, "( is missing");
    if (!expression_read(parser, &one)) return false;
    if (!sign_take(parser, ',')) return expression_fails(parser, ", is missing");
    if (!expression_read(parser, &other)) return false;
    if (!sign_take(parser, ')')) return expression_fails(parser, ") is missing");
    value->low = (one.low < other.low) == least ? one.low : other.low;
    value->high = (one.high < other.high) == least ? one.high : other.high;
    return true;
}

static bool name_read(struct parser *parser, struct range *value) {
    char name[RANGE_NAME];
    size_t length = word_length(parser->at);
    if (length >= sizeof name) return expression_fails(parser, "a name is too long");
    memcpy(name, parser->at, length);
    name[length] = '\0';
    const char *begin = parser->at;
    parser->at += length;
    if (strcmp(name, "min") == 0 || strcmp(name, "max") == 0) return two_read(parser, name[1] == 'i', value);
    if (parser->named(parser->asked, name, value)) return is_small(parser, *value);
    parser->at = begin;
    return expression_fails(parser, "there is no such name; REQUEST.ok, .refused, .unknown and .asked are there");
}

static bool factor_read(struct parser *parser, struct range *value) {
    char sign = next_sign(parser);
    if (sign_take(parser, '-')) {
        struct range positive;
        if (++parser->depth > DEPTH_MOST) return expression_fails(parser, "there are too many - in a row");
        if (!factor_read(parser, &positive)) return false;
        parser->depth--;
        *value = (struct range){-positive.high, -positive.low};
        return true;
    }
    if (sign_take(parser, '(')) {
        if (!expression_read(parser, value)) return false;
        return sign_take(parser, ')') || expression_fails(parser, ") is missing");
    }
    if (isdigit((unsigned char)sign)) return constant_read(parser, value);
    if (isalpha((unsigned char)sign) || sign == '_') return name_read(parser, value);
    return expression_fails(parser, "a number, a name or ( is missing");
}

static struct range product(struct range one, struct range other) {
    const int64_t ends[] = {one.low * other.low, one.low * other.high, one.high * other.low, one.high * other.high};
    struct range value = {ends[0], ends[0]};
    for (size_t each = 1; each < sizeof ends / sizeof ends[0]; each++) {
        if (ends[each] < value.low) value.low = ends[each];
        if (ends[each] > value.high) value.high = ends[each];
    }
    return value;
}

static bool term_read(struct parser *parser, struct range *value) {
    if (!factor_read(parser, value)) return false;
    while (sign_take(parser, '*')) {
        struct range other;
        if (!factor_read(parser, &other)) return false;
        *value = product(*value, other);
        if (!is_small(parser, *value)) return false;
    }
    return true;
}

static bool expression_read(struct parser *parser, struct range *value) {
    if (++parser->depth > DEPTH_MOST) return expression_fails(parser, "there are too many ( in each other");
    bool good = term_read(parser, value);
    for (char sign; good && ((sign = next_sign(parser)) == '+' || sign == '-');) {
        struct range other;
        parser->at++;
        good = term_read(parser, &other);
        if (!good) break;
        value->low = sign == '+' ? value->low + other.low : value->low - other.high;
        value->high = sign == '+' ? value->high + other.high : value->high - other.low;
        good = is_small(parser, *value);
    }
    parser->depth--;
    return good;
}

bool range_evaluate(const char *text, range_named *named, const void *asked, struct range *value, char *reason) {
    struct parser parser = {.text = text, .at = text, .named = named, .asked = asked, .reason = reason};
    reason[0] = '\0';
    if (!expression_read(&parser, value)) return false;
    return next_sign(&parser) == '\0' || expression_fails(&parser, "+, -, * or the end is missing");
}
