#include "harness/recogniser/sql/sql_tokens.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "harness/scheduler/grown.h"

/* --- tokens --- */

static bool is_word_byte(char byte) {
    return isalnum((unsigned char)byte) || byte == '_' || byte == '$' || (unsigned char)byte >= 0x80;
}

static bool begins_word(char byte) {
    return isalpha((unsigned char)byte) || byte == '_' || (unsigned char)byte >= 0x80;
}

static bool is_one_of(char byte, const char *bytes) {
    return byte != '\0' && strchr(bytes, byte);
}

static bool sql_is_at(struct span text, size_t at, const char *two) {
    return at + 1 < text.length && text.bytes[at] == two[0] && text.bytes[at + 1] == two[1];
}

/* Comments nest. */
static size_t comment_end(struct span text, size_t at) {
    int depth = 0;
    while (at < text.length) {
        if (sql_is_at(text, at, "/*")) {
            depth++;
            at += 2;
        } else if (sql_is_at(text, at, "*/")) {
            at += 2;
            if (--depth == 0) return at;
        } else {
            at++;
        }
    }
    return at;
}

static size_t blanks_end(struct span text, size_t at) {
    while (at < text.length) {
        if (isspace((unsigned char)text.bytes[at])) {
            at++;
        } else if (sql_is_at(text, at, "--")) {
            const char *newline = memchr(text.bytes + at, '\n', text.length - at);
            at = newline ? (size_t)(newline - text.bytes) : text.length;
        } else if (sql_is_at(text, at, "/*")) {
            at = comment_end(text, at);
        } else {
            return at;
        }
    }
    return at;
}

/* Behind the quote that ends what begins at `at`; two in a row are one. */
static size_t quote_end(struct span text, size_t at, bool escapes) {
    char quote = text.bytes[at++];
    while (at < text.length) {
        if (escapes && text.bytes[at] == '\\' && at + 1 < text.length) at += 2;
        else if (text.bytes[at] != quote) at++;
        else if (at + 1 < text.length && text.bytes[at + 1] == quote) at += 2;
        else return at + 1;
    }
    return at;
}

/* Behind $tag$...$tag$; `at` itself: there is no tag. */
static size_t dollar_end(struct span text, size_t at) {
    size_t tag_end = at + 1;
    while (tag_end < text.length && text.bytes[tag_end] != '$' && is_word_byte(text.bytes[tag_end])) tag_end++;
    if (tag_end == text.length || text.bytes[tag_end] != '$') return at;
    size_t tag = tag_end + 1 - at;
    const char *rest = text.bytes + at + tag;
    const char *found = memmem(rest, text.length - at - tag, text.bytes + at, tag);
    return found ? (size_t)(found - text.bytes) + tag : text.length;
}

/* E'..', B'..', X'..', N'..', U&'..', U&".." */
static size_t prefix_length(struct span text, size_t at) {
    if (at + 1 < text.length && is_one_of(text.bytes[at], "eEbBxXnN") && text.bytes[at + 1] == '\'') return 1;
    if (at + 2 < text.length && is_one_of(text.bytes[at], "uU") && text.bytes[at + 1] == '&' &&
        is_one_of(text.bytes[at + 2], "'\""))
        return 2;
    return 0;
}

static size_t sql_number_end(struct span text, size_t at) {
    while (at < text.length) {
        char byte = text.bytes[at];
        bool signs = (byte == '+' || byte == '-') && is_one_of(text.bytes[at - 1], "eE");
        bool range = byte == '.' && sql_is_at(text, at, "..");
        if (range || !(isalnum((unsigned char)byte) || byte == '.' || byte == '_' || signs)) break;
        at++;
    }
    return at;
}

static size_t operator_end(struct span text, size_t at) {
    size_t begin = at;
    while (at < text.length && is_one_of(text.bytes[at], "+-*/<>=~!@#%^&|`?:")) {
        if (at > begin && (sql_is_at(text, at, "--") || sql_is_at(text, at, "/*"))) break;
        /* A sign belongs to the number behind it. */
        if (at > begin && (text.bytes[at] == '-' || text.bytes[at] == '+')) break;
        at++;
    }
    return at > begin ? at : at + 1;
}

static enum sql_token_kind token_measure(struct span text, size_t at, size_t *end) {
    char byte = text.bytes[at];
    size_t prefix = prefix_length(text, at);
    if (prefix > 0 || byte == '\'' || byte == '"') {
        *end = quote_end(text, at + prefix, is_one_of(byte, "eE"));
        return text.bytes[at + prefix] == '"' ? SQL_QUOTED : SQL_STRING;
    }
    if (byte == '$') {
        *end = dollar_end(text, at);
        if (*end > at) return SQL_STRING;
        *end = at + 1;
        while (*end < text.length && isdigit((unsigned char)text.bytes[*end])) ++*end;
        return *end > at + 1 ? SQL_PARAMETER : SQL_OPERATOR;
    }
    if (begins_word(byte)) {
        *end = at;
        while (*end < text.length && is_word_byte(text.bytes[*end])) ++*end;
        return SQL_WORD;
    }
    if (isdigit((unsigned char)byte) ||
        (byte == '.' && at + 1 < text.length && isdigit((unsigned char)text.bytes[at + 1]))) {
        *end = sql_number_end(text, at + 1);
        return SQL_NUMBER;
    }
    if (is_one_of(byte, "()[],;.")) {
        *end = at + 1;
        return SQL_MARK;
    }
    *end = operator_end(text, at);
    return SQL_OPERATOR;
}

struct sql_token sql_token_next(struct span text, size_t *at) {
    size_t begin = blanks_end(text, *at), end = begin;
    struct sql_token token = {.kind = SQL_END, .match = -1};
    if (begin < text.length) token.kind = token_measure(text, begin, &end);
    assert(end <= text.length);
    token.text = (struct span){text.bytes + begin, end - begin};
    *at = end;
    return token;
}

static bool opens(const struct sql_token *token) {
    return sql_token_is(token, "(") || sql_token_is(token, "[");
}

static void partners_find(struct sql_tokens *tokens) {
    int open = -1; /* the innermost one that is open; `match` of it: the one around it */
    for (int each = 0; each < tokens->count; each++) {
        struct sql_token *token = &tokens->list[each];
        if (opens(token)) {
            token->match = open;
            open = each;
        } else if (open >= 0 && sql_token_is(token, sql_token_is(&tokens->list[open], "(") ? ")" : "]")) {
            int around = tokens->list[open].match;
            tokens->list[open].match = each;
            token->match = open;
            open = around;
        }
    }
    while (open >= 0) {
        int around = tokens->list[open].match;
        tokens->list[open].match = -1;
        open = around;
    }
}

void sql_tokens_read(struct sql_tokens *tokens, struct span text) {
    *tokens = (struct sql_tokens){0};
    size_t at = 0, room = 0;
    for (struct sql_token token = {.kind = SQL_MARK}; token.kind != SQL_END;) {
        token = sql_token_next(text, &at);
        tokens->cut = tokens->count == SQL_TOKENS_MOST && token.kind != SQL_END;
        if (tokens->cut) token = (struct sql_token){.kind = SQL_END, .text = {token.text.bytes, 0}, .match = -1};
        tokens->list = grown(tokens->list, (size_t)tokens->count + 1, &room, sizeof *tokens->list);
        tokens->list[tokens->count++] = token;
    }
    tokens->count--; /* SQL_END stays behind them */
    partners_find(tokens);
}

void sql_tokens_free(struct sql_tokens *tokens) {
    free(tokens->list);
    *tokens = (struct sql_tokens){0};
}

bool sql_token_is_word(const struct sql_token *token, const char *word) {
    return token->kind == SQL_WORD && span_is_word(token->text, word);
}

bool sql_token_is(const struct sql_token *token, const char *mark_or_operator) {
    return (token->kind == SQL_MARK || token->kind == SQL_OPERATOR) && span_is(token->text, mark_or_operator);
}

int sql_token_parameter(const struct sql_token *token) {
    enum { PARAMETERS_MOST = 65535 };
    int number = 0;
    if (token->kind != SQL_PARAMETER) return 0;
    for (size_t each = 1; each < token->text.length; each++) {
        number = number * 10 + (token->text.bytes[each] - '0');
        if (number > PARAMETERS_MOST) return 0;
    }
    return number;
}

/* --- what they mean --- */

/* Bytes between quotes; two quotes in a row are one. */
static void unquoted_add(struct short_text *text, struct span inside, char quote, bool escapes) {
    static const char ESCAPES[] = "b\bf\fn\nr\rt\t";
    for (size_t each = 0; each < inside.length; each++) {
        char byte = inside.bytes[each];
        if ((byte == quote || (escapes && byte == '\\')) && each + 1 < inside.length) {
            byte = inside.bytes[++each];
            const char *known = escapes && inside.bytes[each - 1] == '\\' && byte ? strchr(ESCAPES, byte) : NULL;
            if (known && (known - ESCAPES) % 2 == 0) byte = known[1];
        }
        short_text_byte(text, byte);
    }
}

/* What is between the first quote and the last byte if it is one. */
static struct span quoted_inside(struct span text, char quote) {
    const char *begin = memchr(text.bytes, quote, text.length);
    assert(begin);
    struct span inside = {begin + 1, text.length - (size_t)(begin + 1 - text.bytes)};
    if (inside.length > 0 && inside.bytes[inside.length - 1] == quote) inside.length--;
    return inside;
}

void sql_name_add(struct short_text *text, const struct sql_token *token) {
    if (token->kind == SQL_QUOTED) {
        unquoted_add(text, quoted_inside(token->text, '"'), '"', false);
        return;
    }
    for (size_t each = 0; each < token->text.length; each++) {
        char byte = (char)tolower((unsigned char)token->text.bytes[each]);
        short_text_byte(text, byte);
    }
}

void sql_string_add(struct short_text *text, struct span string) {
    if (string.bytes[0] != '$') {
        unquoted_add(text, quoted_inside(string, '\''), '\'', is_one_of(string.bytes[0], "eE"));
        return;
    }
    const char *tag_end = memchr(string.bytes + 1, '$', string.length - 1);
    size_t tag = tag_end ? (size_t)(tag_end + 1 - string.bytes) : string.length;
    size_t inside = string.length > 2 * tag ? string.length - 2 * tag : 0;
    short_text_add(text, (struct span){string.bytes + tag, inside});
}
