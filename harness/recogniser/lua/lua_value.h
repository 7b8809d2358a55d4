/* What the interpreter and the toy server share: values, and the state of a run. */
#pragma once

#include "harness/recogniser/lua/lua_run.h"

enum lua_type { TYPE_NIL, TYPE_BOOLEAN, TYPE_NUMBER, TYPE_STRING, TYPE_TABLE };

/* What a string is besides its bytes. */
enum lua_secret {
    NO_SECRET,
    OWNERS_VALUE, /* the value of the caller's lock: equal to what came from any ARGV */
    OTHERS_VALUE, /* equal to nothing but itself */
};

struct lua_value {
    enum lua_type type;
    bool boolean;
    bool is_known; /* of a number */
    double number;
    struct span text; /* of a string */
    enum lua_secret secret;
    int argument, key; /* the ARGV or KEYS that it came from, from 1; 0: from elsewhere */
    int table;         /* index */
};

enum {
    LUA_TABLES = 48,
    LUA_ROOM = 400,        /* values in all tables */
    LUA_STRINGS = 1 << 14, /* bytes of strings that it makes */
    LUA_NAMES = 64,
    LUA_STEPS = 20000,
    LUA_DEEPEST = 40,
    LUA_WORDS = 40, /* of a call */
};

enum lua_table_kind { TABLE_LIST, TABLE_STATUS, TABLE_ERROR };
struct lua_table {
    enum lua_table_kind kind;
    int first, count, room; /* in `elements` */
};

struct lua_name {
    struct span name;
    struct lua_value value;
};

enum lua_flow { FLOW_ON, FLOW_BREAK, FLOW_RETURN };

struct lua_state {
    const struct lua_call *call;
    struct lua_run *run;
    int at; /* the token */
    bool is_skipping;
    bool has_failed;
    enum lua_flow flow;
    int steps, depth;
    struct lua_value result;
    int name_count, table_count, element_count;
    size_t string_length;
    /* The locks of the toy server, as they are now. */
    bool exists[LUA_KEYS], is_own[LUA_KEYS], was_touched[LUA_KEYS];
    int holds[LUA_KEYS], fields[LUA_KEYS];
    /* Not zeroed, from here on. */
    struct lua_name names[LUA_NAMES];
    struct lua_table tables[LUA_TABLES];
    struct lua_value elements[LUA_ROOM];
    char strings[LUA_STRINGS];
};

/* Ends the run: it cannot be understood. */
void lua_fail(struct lua_state *state, const char *what, struct span detail);

static inline struct lua_value lua_nil(void) {
    return (struct lua_value){.type = TYPE_NIL};
}

static inline struct lua_value lua_boolean(bool boolean) {
    return (struct lua_value){.type = TYPE_BOOLEAN, .boolean = boolean};
}

static inline struct lua_value lua_number(double number) {
    return (struct lua_value){.type = TYPE_NUMBER, .number = number, .is_known = true};
}

/* A number that another server would answer otherwise. */
static inline struct lua_value lua_some_number(double number) {
    return (struct lua_value){.type = TYPE_NUMBER, .number = number};
}

static inline struct lua_value lua_text(const char *text) {
    return (struct lua_value){.type = TYPE_STRING, .text = text_span(text)};
}

/* A new table with no elements. */
struct lua_value lua_table_make(struct lua_state *state, enum lua_table_kind kind);
void lua_table_append(struct lua_state *state, struct lua_value table, struct lua_value element);
/* Keeps a copy of the bytes. */
struct span lua_string_keep(struct lua_state *state, struct span text);
/* As a number: a string of digits is one. False: it is not. */
bool lua_to_number(struct lua_value value, struct lua_value *number);
/* As bytes; a number is printed. */
struct span lua_to_text(struct lua_state *state, struct lua_value value);

struct lua_value lua_table_get(const struct lua_state *state, struct lua_value table, int index);
bool lua_is_true(struct lua_value value);
/* The owner's value is equal to the ARGV that it is compared with: that one is the owner. */
bool lua_values_are_equal(struct lua_state *state, struct lua_value one, struct lua_value other);
/* KEYS[index], ARGV[index] */
struct lua_value lua_words_element(const struct lua_call *call, bool is_key, double index);

/* What a function is called with. */
struct lua_words {
    struct lua_value list[LUA_WORDS];
    int count;
};
void lua_words_add(struct lua_state *state, struct lua_words *words, struct lua_value value);
struct lua_value lua_function_call(struct lua_state *state, const char *name, const struct lua_words *words);

/* redis.call, with its words. */
struct lua_value lua_server_call(struct lua_state *state, const struct lua_value *words, int count);
void lua_server_begin(struct lua_state *state);
