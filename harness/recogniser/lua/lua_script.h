/* A script of Redis, as tokens of Lua 5.1 (its reference manual, section 2.1). */
#pragma once

#include "harness/recogniser/text/short_text.h"

enum lua_token_kind { LUA_END, LUA_NAME, LUA_NUMBER, LUA_STRING, LUA_MARK };

struct lua_token {
    enum lua_token_kind kind;
    struct span text; /* of a string: what is between its quotes, as written */
    double number;
    int power; /* of an operator of two values: how strongly it binds; 0: it is another token */
};

enum { LUA_SCRIPT_MOST = 1 << 15, LUA_TOKENS_MOST = 6000 };

struct lua_script {
    char *source;             /* owned */
    struct lua_token *tokens; /* owned; the last one is LUA_END */
    int count;
    bool is_cut;     /* it is longer than is read */
    bool loops_keys; /* it does something to each of its KEYS */
};

struct lua_script *lua_script_read(struct span text);
void lua_script_drop(void *script);

static inline bool lua_token_is(const struct lua_token *token, const char *word) {
    bool can_be = token->kind == LUA_NAME || token->kind == LUA_MARK;
    return can_be && token->text.bytes[0] == word[0] && span_is(token->text, word); /* the first byte decides mostly */
}
