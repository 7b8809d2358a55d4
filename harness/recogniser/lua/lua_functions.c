#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/recogniser/lua/lua_value.h"

/* Values, and the functions that a script can call. */

/* --- values --- */

void lua_fail(struct lua_state *state, const char *what, struct span detail) {
    if (state->has_failed) return; /* the first reason counts */
    struct short_text reason = short_text_in(state->run->reason, sizeof state->run->reason);
    state->has_failed = state->is_skipping = true;
    short_text_say(&reason, what);
    short_text_add(&reason, detail);
    for (size_t each = 0; each < reason.length; each++)
        if (reason.bytes[each] < ' ') reason.bytes[each] = ' ';
}

struct lua_value lua_table_make(struct lua_state *state, enum lua_table_kind kind) {
    enum { TABLE_ROOM = 20 };
    int room = state->element_count + TABLE_ROOM <= LUA_ROOM ? TABLE_ROOM : LUA_ROOM - state->element_count;
    if (state->table_count == LUA_TABLES || room == 0) {
        lua_fail(state, "it makes more tables than are looked at", (struct span){"", 0});
        return lua_nil();
    }
    state->tables[state->table_count] = (struct lua_table){kind, state->element_count, 0, room};
    state->element_count += room;
    return (struct lua_value){.type = TYPE_TABLE, .table = state->table_count++};
}

void lua_table_append(struct lua_state *state, struct lua_value value, struct lua_value element) {
    if (value.type != TYPE_TABLE) return;
    struct lua_table *table = &state->tables[value.table];
    if (table->count == table->room)
        lua_fail(state, "a table has more elements than are looked at", (struct span){"", 0});
    else state->elements[table->first + table->count++] = element;
}

struct lua_value lua_table_get(const struct lua_state *state, struct lua_value value, int index) {
    const struct lua_table *table = &state->tables[value.table];
    return index >= 1 && index <= table->count ? state->elements[table->first + index - 1] : lua_nil();
}

struct span lua_string_keep(struct lua_state *state, struct span text) {
    if (text.length > LUA_STRINGS - state->string_length) {
        lua_fail(state, "its strings are too long", (struct span){"", 0});
        return (struct span){"", 0};
    }
    char *kept = state->strings + state->string_length;
    if (text.length > 0) memcpy(kept, text.bytes, text.length);
    state->string_length += text.length;
    return (struct span){kept, text.length};
}

bool lua_is_true(struct lua_value value) {
    return value.type != TYPE_NIL && !(value.type == TYPE_BOOLEAN && !value.boolean);
}

bool lua_to_number(struct lua_value value, struct lua_value *number) {
    char digits[40], *end;
    struct short_text text = short_text_in(digits, sizeof digits);
    *number = value;
    if (value.type == TYPE_NUMBER) return true;
    if (value.type != TYPE_STRING) return false;
    number->type = TYPE_NUMBER;
    number->is_known = value.secret == NO_SECRET;
    number->number = 0;
    if (value.secret != NO_SECRET) return true;
    short_text_add(&text, value.text);
    number->number = strtod(digits, &end);
    while (*end == ' ') end++;
    return text.length > 0 && !text.cut && *end == '\0' && isfinite(number->number);
}

struct span lua_to_text(struct lua_state *state, struct lua_value value) {
    char digits[40];
    if (value.type == TYPE_STRING) return value.text;
    if (value.type != TYPE_NUMBER) return (struct span){"", 0};
    snprintf(digits, sizeof digits, "%.14g", value.number);
    return lua_string_keep(state, text_span(digits));
}

/* The owner's value is equal to the ARGV that it is compared with: that one is the owner. */
bool lua_values_are_equal(struct lua_state *state, struct lua_value one, struct lua_value other) {
    if (one.type != other.type) return false;
    switch (one.type) {
    case TYPE_NIL: return true;
    case TYPE_BOOLEAN: return one.boolean == other.boolean;
    case TYPE_NUMBER: return one.number == other.number;
    case TYPE_TABLE: return one.table == other.table;
    default: break;
    }
    if (one.secret == NO_SECRET && other.secret == NO_SECRET) return spans_equal(one.text, other.text);
    if (one.secret != NO_SECRET && other.secret != NO_SECRET) return one.secret == other.secret;
    struct lua_value secret = one.secret != NO_SECRET ? one : other, plain = one.secret != NO_SECRET ? other : one;
    if (plain.argument == 0) return false;
    struct short_text owner = short_text_in(state->run->owner, sizeof state->run->owner);
    short_text_add(&owner, plain.text);
    return secret.secret == OWNERS_VALUE;
}

struct lua_value lua_words_element(const struct lua_call *call, bool is_key, double index) {
    int count = is_key ? call->key_count : call->argument_count;
    if (!(index >= 1 && index <= count)) return lua_nil();
    int at = (int)index;
    struct lua_value value = {.type = TYPE_STRING, .text = is_key ? call->keys[at - 1] : call->arguments[at - 1]};
    *(is_key ? &value.key : &value.argument) = at;
    return value;
}

/* --- functions that scripts can call --- */

static struct lua_value word_at(const struct lua_words *words, int at) {
    return at < words->count ? words->list[at] : lua_nil();
}

void lua_words_add(struct lua_state *state, struct lua_words *words, struct lua_value value) {
    if (words->count == LUA_WORDS) lua_fail(state, "a call has more words than are looked at", (struct span){"", 0});
    else words->list[words->count++] = value;
}

static struct lua_value call_redis(struct lua_state *state, const struct lua_words *words) {
    return lua_server_call(state, words->list, words->count);
}

static struct lua_value call_reply(struct lua_state *state, const struct lua_words *words, enum lua_table_kind kind) {
    struct lua_value table = lua_table_make(state, kind);
    lua_table_append(state, table, word_at(words, 0));
    return table;
}

static struct lua_value call_status_reply(struct lua_state *state, const struct lua_words *words) {
    return call_reply(state, words, TABLE_STATUS);
}

static struct lua_value call_error_reply(struct lua_state *state, const struct lua_words *words) {
    return call_reply(state, words, TABLE_ERROR);
}

static struct lua_value call_nothing(struct lua_state *state, const struct lua_words *words) {
    (void)state;
    (void)words;
    return lua_nil();
}

static struct lua_value call_tonumber(struct lua_state *state, const struct lua_words *words) {
    struct lua_value number;
    (void)state;
    return lua_to_number(word_at(words, 0), &number) ? number : lua_nil();
}

static struct lua_value call_tostring(struct lua_state *state, const struct lua_words *words) {
    struct lua_value value = word_at(words, 0);
    if (value.type == TYPE_NUMBER) value.text = lua_to_text(state, value);
    if (value.type == TYPE_NIL) value.text = text_span("nil");
    if (value.type == TYPE_BOOLEAN) value.text = text_span(value.boolean ? "true" : "false");
    value.type = TYPE_STRING;
    return value;
}

static struct lua_value call_type(struct lua_state *state, const struct lua_words *words) {
    static const char *const NAMES[] = {"nil", "boolean", "number", "string", "table"};
    (void)state;
    return lua_text(NAMES[word_at(words, 0).type]);
}

static struct lua_value extreme_of(struct lua_state *state, const struct lua_words *words, bool most) {
    struct lua_value best = lua_nil(), number;
    bool known = true;
    for (int each = 0; each < words->count; each++) {
        if (!lua_to_number(words->list[each], &number)) {
            lua_fail(state, "math.max or math.min of no number", (struct span){"", 0});
            return lua_nil();
        }
        known &= number.is_known;
        if (best.type == TYPE_NIL || (most ? number.number > best.number : number.number < best.number)) best = number;
    }
    best.is_known = known;
    return best;
}

static struct lua_value call_max(struct lua_state *state, const struct lua_words *words) {
    return extreme_of(state, words, true);
}

static struct lua_value call_min(struct lua_state *state, const struct lua_words *words) {
    return extreme_of(state, words, false);
}

static struct lua_value call_floor(struct lua_state *state, const struct lua_words *words) {
    struct lua_value number;
    (void)state;
    if (!lua_to_number(word_at(words, 0), &number)) return lua_nil();
    number.number = floor(number.number);
    return number;
}

/* A part of what came from ARGV is still the owner's. */
static struct lua_value call_sub(struct lua_state *state, const struct lua_words *words) {
    struct lua_value value = word_at(words, 0), from = lua_number(1), to = lua_number(-1);
    value.text = lua_to_text(state, value);
    if (words->count > 1) lua_to_number(words->list[1], &from);
    if (words->count > 2) lua_to_number(words->list[2], &to);
    double length = (double)value.text.length;
    double begin = from.number < 0 ? length + from.number : from.number - 1;
    double end = to.number < 0 ? length + to.number + 1 : to.number;
    if (!(begin > 0)) begin = 0;
    if (!(end < length)) end = length;
    value.type = TYPE_STRING;
    value.text = begin < end ? (struct span){value.text.bytes + (size_t)begin, (size_t)end - (size_t)begin}
                             : (struct span){"", 0};
    return value;
}

static struct lua_value lua_call_length(struct lua_state *state, const struct lua_words *words) {
    return lua_number((double)lua_to_text(state, word_at(words, 0)).length);
}

static struct lua_value call_insert(struct lua_state *state, const struct lua_words *words) {
    if (words->count == 2) lua_table_append(state, words->list[0], words->list[1]);
    else lua_fail(state, "table.insert at a place", (struct span){"", 0});
    return lua_nil();
}

static const struct lua_function {
    const char *name;
    struct lua_value (*call)(struct lua_state *state, const struct lua_words *words);
} FUNCTIONS[] = {
    {"redis.call", call_redis},
    {"redis.pcall", call_redis},
    {"server.call", call_redis},
    {"server.pcall", call_redis},
    {"redis.status_reply", call_status_reply},
    {"redis.error_reply", call_error_reply},
    {"redis.log", call_nothing},
    {"redis.replicate_commands", call_nothing},
    {"redis.set_repl", call_nothing},
    {"tonumber", call_tonumber},
    {"tostring", call_tostring},
    {"type", call_type},
    {"math.max", call_max},
    {"math.min", call_min},
    {"math.floor", call_floor},
    {"string.sub", call_sub},
    {"string.len", lua_call_length},
    {"table.insert", call_insert},
};

struct lua_value lua_function_call(struct lua_state *state, const char *name, const struct lua_words *words) {
    if (state->is_skipping) return lua_nil();
    for (size_t each = 0; each < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; each++)
        if (strcmp(FUNCTIONS[each].name, name) == 0) return FUNCTIONS[each].call(state, words);
    lua_fail(state, "its function ", text_span(name));
    return lua_nil();
}
