#include "harness/recogniser/lua/lua_script.h"

#include <ctype.h>
#include <stdlib.h>

#include "harness/scheduler/grown.h"

/* How many = are between the two brackets of [==[ or ]==] at `at`; -1: no such bracket is there. */
static int long_bracket(struct span text, size_t at, char bracket) {
    size_t equals = at + 1;
    if (at >= text.length || text.bytes[at] != bracket) return -1;
    while (equals < text.length && text.bytes[equals] == '=') equals++;
    return equals < text.length && text.bytes[equals] == bracket ? (int)(equals - at - 1) : -1;
}

/* Behind the long string or comment at `at`; *inside: what it holds. */
static size_t long_end(struct span text, size_t at, int level, struct span *inside) {
    size_t begin = at + (size_t)level + 2, end = begin;
    while (end < text.length && long_bracket(text, end, ']') != level) end++;
    *inside = (struct span){text.bytes + (begin < text.length ? begin : text.length), end > begin ? end - begin : 0};
    return end < text.length ? end + (size_t)level + 2 : text.length;
}

static size_t lua_blanks_end(struct span text, size_t at) {
    struct span inside;
    while (at < text.length) {
        bool comment = text.bytes[at] == '-' && at + 1 < text.length && text.bytes[at + 1] == '-';
        if (comment && long_bracket(text, at + 2, '[') >= 0) {
            at = long_end(text, at + 2, long_bracket(text, at + 2, '['), &inside);
        } else if (comment) {
            const char *newline = memchr(text.bytes + at, '\n', text.length - at);
            at = newline ? (size_t)(newline - text.bytes) : text.length;
        } else if (isspace((unsigned char)text.bytes[at])) {
            at++;
        } else {
            break;
        }
    }
    return at;
}

static size_t lua_string_end(struct span text, size_t at, struct lua_token *token) {
    char quote = text.bytes[at];
    size_t end = at + 1;
    while (end < text.length && text.bytes[end] != quote) end += text.bytes[end] == '\\' ? 2 : 1;
    if (end > text.length) end = text.length;
    token->kind = LUA_STRING;
    token->text = (struct span){text.bytes + at + 1, end - at - 1};
    return end < text.length ? end + 1 : end;
}

static size_t lua_number_end(struct span text, size_t at, struct lua_token *token) {
    char digits[40];
    struct short_text copy = short_text_in(digits, sizeof digits);
    size_t end = at;
    while (end < text.length && (isalnum((unsigned char)text.bytes[end]) || text.bytes[end] == '.')) end++;
    short_text_add(&copy, (struct span){text.bytes + at, end - at});
    token->kind = LUA_NUMBER;
    token->text = (struct span){text.bytes + at, end - at};
    token->number = strtod(digits, NULL);
    return end;
}

static size_t lua_mark_end(struct span text, size_t at, struct lua_token *token) {
    static const char *const MARKS[] = {"...", "..", "==", "~=", "<=", ">="};
    size_t length = 1;
    for (size_t each = 0; each < sizeof MARKS / sizeof MARKS[0] && length == 1; each++) {
        size_t mark = strlen(MARKS[each]);
        if (text.length - at >= mark && memcmp(text.bytes + at, MARKS[each], mark) == 0) length = mark;
    }
    token->kind = LUA_MARK;
    token->text = (struct span){text.bytes + at, length};
    return at + length;
}

/* Moves behind the token at `at`, where no blank is. */
static size_t lua_token_read(struct span text, size_t at, struct lua_token *token) {
    unsigned char byte = (unsigned char)text.bytes[at];
    int level = long_bracket(text, at, '[');
    *token = (struct lua_token){.kind = LUA_STRING};
    if (level >= 0) return long_end(text, at, level, &token->text);
    if (byte == '"' || byte == '\'') return lua_string_end(text, at, token);
    if (isdigit(byte)) return lua_number_end(text, at, token);
    if (!isalpha(byte) && byte != '_') return lua_mark_end(text, at, token);
    size_t end = at;
    while (end < text.length && (isalnum((unsigned char)text.bytes[end]) || text.bytes[end] == '_')) end++;
    *token = (struct lua_token){.kind = LUA_NAME, .text = {text.bytes + at, end - at}};
    return end;
}

static int lua_power_of(const struct lua_token *token) {
    static const struct {
        const char *mark;
        int power;
    } POWERS[] = {{"or", 1}, {"and", 2}, {"<", 3}, {">", 3}, {"<=", 3}, {">=", 3}, {"~=", 3},
                  {"==", 3}, {"..", 4},  {"+", 5}, {"-", 5}, {"*", 6},  {"/", 6},  {"%", 6}};
    for (size_t each = 0; each < sizeof POWERS / sizeof POWERS[0]; each++)
        if (lua_token_is(token, POWERS[each].mark)) return POWERS[each].power;
    return 0;
}

/* ipairs(KEYS), #KEYS */
static bool keys_are_looped(const struct lua_script *script) {
    for (int each = 1; each < script->count; each++) {
        const struct lua_token *before = &script->tokens[each - 1];
        bool counts = lua_token_is(before, "#");
        bool walks = each > 1 && lua_token_is(before, "(") && lua_token_is(before - 1, "ipairs");
        if ((counts || walks) && lua_token_is(&script->tokens[each], "KEYS")) return true;
    }
    return false;
}

struct lua_script *lua_script_read(struct span text) {
    struct lua_script *script = calloc(1, sizeof *script);
    if (!script) abort();
    script->is_cut = text.length > LUA_SCRIPT_MOST;
    if (script->is_cut) text.length = LUA_SCRIPT_MOST;
    script->source = malloc(text.length + 1);
    if (!script->source) abort();
    if (text.length > 0) memcpy(script->source, text.bytes, text.length);
    script->source[text.length] = '\0';
    text.bytes = script->source;
    size_t room = 0;
    for (size_t at = lua_blanks_end(text, 0);; at = lua_blanks_end(text, at)) {
        struct lua_token token = {.kind = LUA_END};
        script->is_cut |= at < text.length && script->count == LUA_TOKENS_MOST;
        if (at < text.length && !script->is_cut) at = lua_token_read(text, at, &token);
        token.power = lua_power_of(&token);
        script->tokens = grown(script->tokens, (size_t)script->count + 1, &room, sizeof *script->tokens);
        script->tokens[script->count] = token;
        if (token.kind == LUA_END) break;
        script->count++;
    }
    script->loops_keys = keys_are_looped(script);
    return script;
}

void lua_script_drop(void *value) {
    struct lua_script *script = value;
    free(script->tokens);
    free(script->source);
    free(script);
}
