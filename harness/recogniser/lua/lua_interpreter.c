#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/recogniser/lua/lua_value.h"

/* The interpreter: it reads the tokens from the beginning to the end, and skips what is not executed; a loop goes back.
 * Values are what expressions say; a number may be unknown, and what is lua_computed from it is unknown, too. */

static struct lua_value expression(struct lua_state *state, int least);
static void block(struct lua_state *state);

/* --- tokens --- */

static const struct lua_token *token_here(const struct lua_state *state) {
    const struct lua_script *script = state->call->script;
    return &script->tokens[state->at < script->count ? state->at : script->count];
}

static bool is_here(const struct lua_state *state, const char *word) {
    return lua_token_is(token_here(state), word);
}

static bool accept(struct lua_state *state, const char *word) {
    bool here = is_here(state, word);
    if (here) state->at++;
    return here;
}

static void expect(struct lua_state *state, const char *word) {
    if (accept(state, word)) return;
    lua_fail(state, "its text at ", token_here(state)->text);
    state->at = state->call->script->count; /* nothing behind it can be read */
}

static bool step(struct lua_state *state) {
    if (++state->steps > LUA_STEPS) lua_fail(state, "it takes too long", (struct span){"", 0});
    if (state->steps > LUA_STEPS) state->at = state->call->script->count;
    return state->steps <= LUA_STEPS;
}

static bool deeper(struct lua_state *state) {
    if (state->depth < LUA_DEEPEST && step(state)) {
        state->depth++;
        return true;
    }
    lua_fail(state, "it is nested too deeply", (struct span){"", 0});
    state->at = state->call->script->count;
    return false;
}

/* --- names --- */

static struct lua_name *name_find(struct lua_state *state, struct span name) {
    for (int each = state->name_count - 1; each >= 0; each--)
        if (spans_equal(state->names[each].name, name)) return &state->names[each];
    return NULL;
}

static void name_add(struct lua_state *state, struct span name, struct lua_value value) {
    if (state->name_count == LUA_NAMES)
        lua_fail(state, "it has more variables than are looked at", (struct span){"", 0});
    else state->names[state->name_count++] = (struct lua_name){name, value};
}

/* --- expressions --- */

static void all_words_add(struct lua_state *state, struct lua_words *words, struct lua_value value) {
    const struct lua_call *call = state->call;
    for (int each = 1; value.type == TYPE_TABLE && each <= state->tables[value.table].count; each++)
        lua_words_add(state, words, lua_table_get(state, value, each));
    if (value.type != TYPE_STRING || (value.key >= 0 && value.argument >= 0)) return;
    bool is_key = value.key < 0;
    for (int each = 1; each <= (is_key ? call->key_count : call->argument_count); each++)
        lua_words_add(state, words, lua_words_element(call, is_key, each));
}

/* What is between ( and ), which is behind this. `unpack` gives all its elements. */
static void words_read(struct lua_state *state, struct lua_words *words) {
    words->count = 0;
    while (!is_here(state, ")") && token_here(state)->kind != LUA_END) {
        bool unpacks = accept(state, "unpack");
        struct lua_value value = expression(state, 0);
        if (!state->is_skipping && unpacks) all_words_add(state, words, value);
        else if (!state->is_skipping) lua_words_add(state, words, value);
        if (!accept(state, ",")) break;
    }
    expect(state, ")");
}

static struct lua_value table_read(struct lua_state *state) {
    struct lua_value table = state->is_skipping ? lua_nil() : lua_table_make(state, TABLE_LIST);
    while (!is_here(state, "}") && token_here(state)->kind != LUA_END) {
        const struct lua_script *script = state->call->script;
        bool named = token_here(state)->kind == LUA_NAME && lua_token_is(&script->tokens[state->at + 1], "=");
        if (named && table.type == TYPE_TABLE) {
            bool status = is_here(state, "ok"), error = is_here(state, "err");
            state->tables[table.table].kind = status ? TABLE_STATUS : error ? TABLE_ERROR : TABLE_LIST;
            if (!status && !error) lua_fail(state, "a table with names", (struct span){"", 0});
        }
        if (named) state->at += 2;
        struct lua_value element = expression(state, 0);
        if (!state->is_skipping) lua_table_append(state, table, element);
        if (!accept(state, ",") && !accept(state, ";")) break;
    }
    expect(state, "}");
    return table;
}

/* value[index], value.name */
static struct lua_value element_of(struct lua_state *state, struct lua_value value, struct lua_value index) {
    if (value.type == TYPE_STRING && (value.key < 0 || value.argument < 0)) {
        struct lua_value number;
        if (!lua_to_number(index, &number)) return lua_nil();
        return lua_words_element(state->call, value.key < 0, number.number);
    }
    if (value.type != TYPE_TABLE) {
        lua_fail(state, "an element of no table", (struct span){"", 0});
        return lua_nil();
    }
    enum lua_table_kind kind = state->tables[value.table].kind;
    if (index.type == TYPE_NUMBER)
        return index.number >= 1 && index.number < 1e6 ? lua_table_get(state, value, (int)index.number) : lua_nil();
    bool is_its =
        (kind == TABLE_STATUS && span_is(index.text, "ok")) || (kind == TABLE_ERROR && span_is(index.text, "err"));
    return is_its ? lua_table_get(state, value, 1) : lua_nil();
}

/* A name that is no variable: KEYS, ARGV, or a function with the names in front of it. */
static struct lua_value global_read(struct lua_state *state, struct span name) {
    char path[64];
    struct short_text text = short_text_in(path, sizeof path);
    struct lua_words words;
    short_text_add(&text, name);
    if (span_is(name, "KEYS")) return (struct lua_value){.type = TYPE_STRING, .text = {"", 0}, .key = -1};
    if (span_is(name, "ARGV")) return (struct lua_value){.type = TYPE_STRING, .text = {"", 0}, .argument = -1};
    while (is_here(state, ".")) {
        state->at++;
        short_text_say(&text, ".");
        short_text_add(&text, token_here(state)->text);
        state->at++;
    }
    if (!accept(state, "(")) {
        if (!state->is_skipping) lua_fail(state, "its name ", text_span(path));
        return lua_nil();
    }
    words_read(state, &words);
    return lua_function_call(state, path, &words);
}

static struct lua_value string_read(struct lua_state *state, struct span written) {
    struct lua_value value = {.type = TYPE_STRING, .text = written};
    if (state->is_skipping || !memchr(written.bytes, '\\', written.length)) return value;
    size_t begin = state->string_length;
    for (size_t each = 0; each < written.length && !state->has_failed; each++) {
        char byte = written.bytes[each];
        if (byte == '\\' && each + 1 < written.length) {
            byte = written.bytes[++each];
            byte = byte == 'n' ? '\n' : byte == 't' ? '\t' : byte == 'r' ? '\r' : byte;
        }
        lua_string_keep(state, (struct span){&byte, 1});
    }
    value.text = (struct span){state->strings + begin, state->string_length - begin};
    return value;
}

static struct lua_value primary(struct lua_state *state) {
    struct lua_token token = *token_here(state);
    if (token.kind != LUA_END) state->at++;
    if (token.kind == LUA_STRING) return string_read(state, token.text);
    if (token.kind == LUA_NUMBER) return lua_number(token.number);
    if (lua_token_is(&token, "nil")) return lua_nil();
    if (lua_token_is(&token, "true") || lua_token_is(&token, "false")) return lua_boolean(lua_token_is(&token, "true"));
    if (lua_token_is(&token, "{")) return table_read(state);
    if (lua_token_is(&token, "(")) {
        struct lua_value inner = expression(state, 0);
        expect(state, ")");
        return inner;
    }
    if (token.kind == LUA_NAME && !lua_token_is(&token, "function")) {
        const struct lua_name *name = name_find(state, token.text);
        return name ? name->value : global_read(state, token.text);
    }
    lua_fail(state, "its text at ", token.text);
    state->at = state->call->script->count;
    return lua_nil();
}

static struct lua_value suffixed(struct lua_state *state) {
    struct lua_value value = primary(state), index;
    while (is_here(state, "[") || is_here(state, ".") || is_here(state, ":") || is_here(state, "(")) {
        if (!step(state)) return lua_nil();
        if (accept(state, "[")) {
            index = expression(state, 0);
            expect(state, "]");
        } else if (accept(state, ".")) {
            index = (struct lua_value){.type = TYPE_STRING, .text = token_here(state)->text};
            state->at++;
        } else {
            lua_fail(state, "a function that is a value", (struct span){"", 0});
            state->at = state->call->script->count;
            return lua_nil();
        }
        value = state->is_skipping ? lua_nil() : element_of(state, value, index);
    }
    return value;
}

static struct lua_value length_of(struct lua_state *state, struct lua_value value) {
    if (value.type == TYPE_STRING && value.key < 0) return lua_number(state->call->key_count);
    if (value.type == TYPE_STRING && value.argument < 0) return lua_number(state->call->argument_count);
    if (value.type == TYPE_STRING) return lua_number((double)value.text.length);
    return value.type == TYPE_TABLE ? lua_number(state->tables[value.table].count) : lua_nil();
}

enum { POWER_UNARY = 7 };

static struct lua_value unary(struct lua_state *state) {
    struct lua_value value, number;
    if (accept(state, "not")) {
        value = expression(state, POWER_UNARY);
        return lua_boolean(!lua_is_true(value));
    }
    if (accept(state, "#")) {
        value = expression(state, POWER_UNARY);
        return length_of(state, value);
    }
    if (!accept(state, "-")) return suffixed(state);
    value = expression(state, POWER_UNARY);
    if (!lua_to_number(value, &number)) return lua_nil();
    number.number = -number.number;
    number.argument = number.key = 0;
    return number;
}

static struct lua_value lua_joined(struct lua_state *state, struct lua_value one, struct lua_value other) {
    struct span first = lua_to_text(state, one), second = lua_to_text(state, other);
    size_t begin = state->string_length;
    lua_string_keep(state, first);
    lua_string_keep(state, second);
    struct lua_value value = {.type = TYPE_STRING, .argument = one.argument ? one.argument : other.argument};
    value.text = (struct span){state->strings + begin, state->string_length - begin};
    if (value.argument < 0) value.argument = 0;
    return value;
}

static struct lua_value lua_computed(struct lua_state *state, struct span mark, struct lua_value one,
                                     struct lua_value other) {
    struct lua_value left, right;
    if (!lua_to_number(one, &left) || !lua_to_number(other, &right)) {
        lua_fail(state, "it computes with what is no number", (struct span){"", 0});
        return lua_nil();
    }
    double number = left.number + right.number;
    if (span_is(mark, "-")) number = left.number - right.number;
    if (span_is(mark, "*")) number = left.number * right.number;
    if (span_is(mark, "/")) number = right.number != 0 ? left.number / right.number : 0;
    if (span_is(mark, "%")) number = right.number != 0 ? fmod(left.number, right.number) : 0;
    return left.is_known && right.is_known ? lua_number(number) : lua_some_number(number);
}

/* <, <=, > and >= of numbers, or of what is one; strings in other ways are not compared by locks. */
static struct lua_value lua_ordered(struct lua_state *state, struct span mark, struct lua_value one,
                                    struct lua_value other) {
    struct lua_value left, right;
    if (!lua_to_number(one, &left) || !lua_to_number(other, &right)) {
        lua_fail(state, "it compares what is no number", (struct span){"", 0});
        return lua_nil();
    }
    bool below = left.number < right.number, same = left.number == right.number;
    if (span_is(mark, "<")) return lua_boolean(below);
    if (span_is(mark, "<=")) return lua_boolean(below || same);
    return lua_boolean(span_is(mark, ">") ? !below && !same : !below);
}

static struct lua_value lua_operated(struct lua_state *state, struct span mark, struct lua_value one,
                                     struct lua_value other) {
    if (span_is(mark, "==")) return lua_boolean(lua_values_are_equal(state, one, other));
    if (span_is(mark, "~=")) return lua_boolean(!lua_values_are_equal(state, one, other));
    if (span_is(mark, "..")) return lua_joined(state, one, other);
    return memchr("<>", mark.bytes[0], 2) ? lua_ordered(state, mark, one, other)
                                          : lua_computed(state, mark, one, other);
}

/* Operators that bind more strongly than `least`. */
static struct lua_value expression(struct lua_state *state, int least) {
    if (!deeper(state)) return lua_nil();
    struct lua_value value = unary(state);
    for (int power; (power = token_here(state)->power) > least;) {
        struct span mark = token_here(state)->text;
        bool skipped = state->is_skipping;
        bool is_and = span_is(mark, "and"), is_or = span_is(mark, "or");
        state->at++;
        if ((is_and && !lua_is_true(value)) || (is_or && lua_is_true(value))) state->is_skipping = true;
        bool decided = state->is_skipping;
        struct lua_value other = expression(state, span_is(mark, "..") ? power - 1 : power);
        state->is_skipping = skipped || state->has_failed;
        if (!step(state)) break;
        if (state->is_skipping || ((is_and || is_or) && decided)) continue;
        value = is_and || is_or ? other : lua_operated(state, mark, value, other);
    }
    state->depth--;
    return value;
}

/* --- statements --- */

static void condition_block(struct lua_state *state, bool runs) {
    bool skipped = state->is_skipping;
    state->is_skipping |= !runs;
    block(state);
    state->is_skipping = skipped || state->has_failed || state->flow != FLOW_ON;
}

static void if_statement(struct lua_state *state) {
    bool done = false;
    do {
        bool skipped = state->is_skipping;
        state->is_skipping |= done;
        bool holds = lua_is_true(expression(state, 0)) && !done;
        state->is_skipping = skipped || state->has_failed;
        expect(state, "then");
        condition_block(state, holds);
        done |= holds;
    } while (accept(state, "elseif"));
    if (accept(state, "else")) condition_block(state, !done);
    expect(state, "end");
}

/* After a pass of a loop: whether there is another one. */
static bool loop_goes_on(struct lua_state *state, bool skipped) {
    if (state->flow == FLOW_BREAK) {
        state->flow = FLOW_ON;
        state->is_skipping = skipped || state->has_failed;
        return false;
    }
    return state->flow == FLOW_ON && !state->has_failed && step(state);
}

static void while_statement(struct lua_state *state) {
    int begin = state->at;
    bool skipped = state->is_skipping, again;
    do {
        state->at = begin;
        bool holds = lua_is_true(expression(state, 0)) && !state->is_skipping;
        expect(state, "do");
        condition_block(state, holds);
        again = holds && loop_goes_on(state, skipped);
    } while (again);
    expect(state, "end");
}

static void repeat_statement(struct lua_state *state) {
    int begin = state->at;
    bool skipped = state->is_skipping, again;
    do {
        state->at = begin;
        condition_block(state, true);
        expect(state, "until");
        bool ends = lua_is_true(expression(state, 0));
        again = !skipped && loop_goes_on(state, skipped) && !ends;
    } while (again);
}

/* One pass with the loop's variables, which end with it. */
static bool for_pass(struct lua_state *state, const struct span *names, int name_count, struct lua_value first,
                     struct lua_value second, int begin, bool runs) {
    int names_before = state->name_count;
    bool skipped = state->is_skipping;
    state->at = begin;
    name_add(state, names[0], first);
    if (name_count > 1) name_add(state, names[1], second);
    condition_block(state, runs);
    state->name_count = names_before;
    return runs && loop_goes_on(state, skipped);
}

static void for_numbers(struct lua_state *state, const struct span *names) {
    struct lua_value from = expression(state, 0), to, by = lua_number(1), number;
    expect(state, ",");
    to = expression(state, 0);
    if (accept(state, ",")) by = expression(state, 0);
    expect(state, "do");
    int begin = state->at;
    bool can = lua_to_number(from, &from) && lua_to_number(to, &to) && lua_to_number(by, &by) && by.number != 0;
    if (!can && !state->is_skipping) lua_fail(state, "a loop without numbers", (struct span){"", 0});
    number = from;
    bool again = true;
    for (bool first = true; again && (first || !state->is_skipping); first = false) {
        bool runs =
            can && !state->is_skipping && (by.number > 0 ? number.number <= to.number : number.number >= to.number);
        again = for_pass(state, names, 1, number, lua_nil(), begin, runs);
        number.number += by.number;
        number.argument = number.key = 0;
    }
}

/* for i, value in ipairs(table) */
static void for_elements(struct lua_state *state, const struct span *names, int name_count) {
    if (!accept(state, "ipairs") && !accept(state, "pairs"))
        lua_fail(state, "a loop over what is no list", (struct span){"", 0});
    expect(state, "(");
    struct lua_value list = expression(state, 0);
    expect(state, ")");
    expect(state, "do");
    int begin = state->at, count = 0;
    bool is_words = list.type == TYPE_STRING && (list.key < 0 || list.argument < 0);
    if (is_words) count = list.key < 0 ? state->call->key_count : state->call->argument_count;
    if (list.type == TYPE_TABLE) count = state->tables[list.table].count;
    bool again = true;
    for (int each = 1; again && (each == 1 || !state->is_skipping); each++) {
        bool runs = !state->is_skipping && each <= count;
        struct lua_value element = lua_nil();
        if (runs)
            element = is_words ? lua_words_element(state->call, list.key < 0, each) : lua_table_get(state, list, each);
        again = for_pass(state, names, name_count, lua_number(each), element, begin, runs);
    }
}

static void for_statement(struct lua_state *state) {
    struct span names[2] = {token_here(state)->text, {"", 0}};
    int name_count = 1;
    state->at++;
    if (accept(state, ",")) {
        names[1] = token_here(state)->text;
        name_count = 2;
        state->at++;
    }
    if (accept(state, "=")) {
        for_numbers(state, names);
    } else {
        expect(state, "in");
        for_elements(state, names, name_count);
    }
    expect(state, "end");
}

static void local_statement(struct lua_state *state) {
    struct span names[8];
    int count = 0, each = 0;
    if (is_here(state, "function")) {
        lua_fail(state, "it defines a function", (struct span){"", 0});
        state->at = state->call->script->count;
        return;
    }
    do {
        if (count < 8) names[count++] = token_here(state)->text;
        state->at++;
    } while (accept(state, ","));
    bool sets = accept(state, "=");
    struct lua_value values[8] = {0};
    while (sets && each < 8) {
        values[each++] = expression(state, 0);
        if (!accept(state, ",")) break;
    }
    for (each = 0; each < count && !state->is_skipping; each++) name_add(state, names[each], values[each]);
}

static void return_statement(struct lua_state *state) {
    struct lua_value value = lua_nil();
    bool has_value = token_here(state)->kind != LUA_END && !is_here(state, "end") && !is_here(state, "else") &&
                     !is_here(state, "elseif") && !is_here(state, ";") && !is_here(state, "until");
    if (has_value) value = expression(state, 0);
    while (accept(state, ",")) expression(state, 0);
    accept(state, ";");
    if (state->is_skipping) return;
    state->result = value;
    state->flow = FLOW_RETURN;
    state->is_skipping = true;
}

static void other_statement(struct lua_state *state) {
    const struct lua_script *script = state->call->script;
    const struct lua_token *token = token_here(state);
    bool assigns = token->kind == LUA_NAME && lua_token_is(&script->tokens[state->at + 1], "=");
    if (!assigns) {
        expression(state, 0);
        if (is_here(state, "=")) lua_fail(state, "it sets an element of a table", (struct span){"", 0});
        if (accept(state, "=")) expression(state, 0);
        return;
    }
    state->at += 2;
    struct lua_value value = expression(state, 0);
    if (state->is_skipping) return;
    struct lua_name *name = name_find(state, token->text);
    if (name) name->value = value;
    else lua_fail(state, "its name ", token->text);
}

static void statement(struct lua_state *state) {
    if (accept(state, ";")) return;
    if (accept(state, "local")) {
        local_statement(state);
    } else if (accept(state, "if")) {
        if_statement(state);
    } else if (accept(state, "while")) {
        while_statement(state);
    } else if (accept(state, "for")) {
        for_statement(state);
    } else if (accept(state, "repeat")) {
        repeat_statement(state);
    } else if (accept(state, "return")) {
        return_statement(state);
    } else if (accept(state, "break")) {
        if (!state->is_skipping) state->flow = FLOW_BREAK;
        state->is_skipping = true;
    } else if (accept(state, "do")) {
        condition_block(state, true);
        expect(state, "end");
    } else {
        other_statement(state);
    }
}

/* Up to the word that ends it, which stays. Its variables end with it. */
static void block(struct lua_state *state) {
    int names_before = state->name_count;
    if (!deeper(state)) return;
    while (token_here(state)->kind != LUA_END && !is_here(state, "end") && !is_here(state, "else") &&
           !is_here(state, "elseif") && !is_here(state, "until") && step(state))
        statement(state);
    state->name_count = names_before;
    state->depth--;
}

/* --- a run --- */

static struct lua_answer lua_answer_of(const struct lua_state *state, struct lua_value value) {
    struct lua_answer answer = {.kind = ANSWER_NULL, .is_known = true};
    if (value.type == TYPE_NUMBER) {
        bool fits = value.number > -9e15 && value.number < 9e15;
        answer = (struct lua_answer){ANSWER_NUMBER, fits ? (int64_t)value.number : 0, value.is_known && fits};
    }
    if (value.type == TYPE_BOOLEAN && value.boolean) answer = (struct lua_answer){ANSWER_NUMBER, 1, true};
    if (value.type == TYPE_STRING) answer.kind = ANSWER_TEXT;
    if (value.type != TYPE_TABLE) return answer;
    const struct lua_table *table = &state->tables[value.table];
    answer.kind = table->kind == TABLE_STATUS ? ANSWER_STATUS : table->kind == TABLE_ERROR ? ANSWER_ERROR : ANSWER_LIST;
    answer.number = table->count;
    return answer;
}

void lua_run(const struct lua_call *call, struct lua_run *run) {
    struct lua_state *state = malloc(sizeof *state);
    if (!state) abort();
    memset(state, 0, offsetof(struct lua_state, names));
    *run = (struct lua_run){0};
    state->call = call;
    state->run = run;
    if (call->script->is_cut) lua_fail(state, "it is too long", (struct span){"", 0});
    lua_server_begin(state);
    block(state);
    if (token_here(state)->kind != LUA_END) lua_fail(state, "its text at ", token_here(state)->text);
    run->answer = lua_answer_of(state, state->result);
    for (int each = 1; run->answer.kind == ANSWER_LIST && each <= run->answer.number && each <= LUA_ELEMENTS; each++)
        run->elements[each - 1] = lua_answer_of(state, lua_table_get(state, state->result, each));
    for (int lock = 0; lock < call->key_count; lock++) run->locks_made += state->was_touched[lock];
    free(state);
}
