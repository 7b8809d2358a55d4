#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "harness/recogniser/lua/lua_value.h"

/* The toy server: its one lock, and commands on keys that are missing. */

enum { TIME_LEFT_MS = 30000, NO_SUCH_KEY = -2 };

struct lua_command {
    struct lua_state *state;
    const struct lua_value *words; /* the first one is the command */
    int count;
    int lock; /* which of the locks the key is; -1: another key */
};

/* --- what is seen of the lock --- */

static struct span word_text(const struct lua_command *command, int word) {
    return word < command->count ? lua_to_text(command->state, command->words[word]) : (struct span){"", 0};
}

static void owner_note(struct lua_state *state, struct lua_value value) {
    struct short_text owner = short_text_in(state->run->owner, sizeof state->run->owner);
    short_text_add(&owner, value.text);
}

static void owner_note_first(struct lua_state *state, struct lua_value value) {
    if (value.argument > 0 && !state->run->owner[0]) owner_note(state, value);
}

static bool lock_exists(const struct lua_command *command) {
    return command->state->exists[command->lock];
}

static bool lock_is_own(const struct lua_command *command) {
    return lock_exists(command) && command->state->is_own[command->lock];
}

static void lease_note(const struct lua_command *command, int word, double factor) {
    struct lua_value number;
    struct lua_run *run = command->state->run;
    if (word >= command->count || !lua_to_number(command->words[word], &number)) return;
    bool fits = number.is_known && number.number >= 0 && number.number < 1e13;
    run->lease_ms = fits ? (int64_t)(number.number * factor) : -1;
}

static void toy_lock_take(const struct lua_command *command, struct lua_value owner) {
    struct lua_state *state = command->state;
    state->run->takes = true;
    state->was_touched[command->lock] = true;
    if (!lock_is_own(command)) state->fields[command->lock]++;
    state->exists[command->lock] = state->is_own[command->lock] = true;
    state->holds[command->lock]++;
    owner_note_first(state, owner);
}

static void toy_lock_extend(const struct lua_command *command) {
    command->state->run->extends = true;
    command->state->was_touched[command->lock] = true;
}

static struct lua_value status_value(struct lua_state *state, const char *text) {
    struct lua_value status = lua_table_make(state, TABLE_STATUS);
    lua_table_append(state, status, lua_text(text));
    return status;
}

static struct lua_value secret_value(const struct lua_command *command) {
    if (!lock_exists(command)) return lua_boolean(false);
    struct lua_value value = lua_text("");
    value.secret = lock_is_own(command) ? OWNERS_VALUE : OTHERS_VALUE;
    return value;
}

/* --- commands on the lock --- */

static struct lua_value on_get(const struct lua_command *command) {
    return secret_value(command);
}

static struct lua_value on_exists(const struct lua_command *command) {
    return lua_number(lock_exists(command));
}

static struct lua_value on_ttl(const struct lua_command *command) {
    return lock_exists(command) ? lua_some_number(TIME_LEFT_MS) : lua_number(NO_SUCH_KEY);
}

static struct lua_value on_type(const struct lua_command *command) {
    return status_value(command->state, lock_exists(command) ? "string" : "none");
}

static bool has_option(const struct lua_command *command, const char *name, int *word) {
    for (*word = 3; *word < command->count; ++*word)
        if (span_is_word(word_text(command, *word), name)) return true;
    return false;
}

/* Sets a string: a new lock, or the owner's own one again. */
static void toy_lock_set(const struct lua_command *command, struct lua_value value) {
    struct lua_run *run = command->state->run;
    bool same = value.argument > 0 && (!run->owner[0] || span_is(value.text, run->owner));
    if (!lock_exists(command) || !lock_is_own(command)) toy_lock_take(command, value);
    else if (same) toy_lock_extend(command);
    else run->changes = true;
}

static struct lua_value on_set(const struct lua_command *command) {
    int word;
    struct lua_value before = secret_value(command);
    if (command->count < 3) return lua_boolean(false);
    bool gets = has_option(command, "get", &word);
    bool refused = has_option(command, "nx", &word) && lock_exists(command);
    refused |= has_option(command, "xx", &word) && !lock_exists(command);
    if (refused) return gets ? before : lua_boolean(false);
    toy_lock_set(command, command->words[2]);
    if (has_option(command, "px", &word)) lease_note(command, word + 1, 1);
    if (has_option(command, "ex", &word)) lease_note(command, word + 1, 1000);
    return gets ? before : status_value(command->state, "OK");
}

static struct lua_value on_setnx(const struct lua_command *command) {
    if (lock_exists(command) || command->count < 3) return lua_number(0);
    toy_lock_set(command, command->words[2]);
    return lua_number(1);
}

static struct lua_value on_setex(const struct lua_command *command) {
    if (command->count < 4) return lua_boolean(false);
    toy_lock_set(command, command->words[3]);
    lease_note(command, 2, span_is_word(word_text(command, 0), "setex") ? 1000 : 1);
    return status_value(command->state, "OK");
}

static struct lua_value on_getset(const struct lua_command *command) {
    struct lua_value before = secret_value(command);
    if (command->count > 2) toy_lock_set(command, command->words[2]);
    return before;
}

static struct lua_value on_delete(const struct lua_command *command) {
    struct lua_state *state = command->state;
    if (!lock_exists(command)) return lua_number(0);
    state->run->deletes = true;
    state->run->gives |= lock_is_own(command);
    state->was_touched[command->lock] = true;
    state->exists[command->lock] = state->is_own[command->lock] = false;
    state->holds[command->lock] = state->fields[command->lock] = 0;
    return lua_number(1);
}

static struct lua_value on_expire(const struct lua_command *command) {
    if (!lock_exists(command)) return lua_number(0);
    if (!command->state->run->takes && !command->state->run->gives) toy_lock_extend(command);
    if (span_is_word(word_text(command, 0), "pexpire")) lease_note(command, 2, 1);
    else if (span_is_word(word_text(command, 0), "expire")) lease_note(command, 2, 1000);
    else command->state->run->lease_ms = span_is_word(word_text(command, 0), "persist") ? 0 : -1;
    return lua_number(1);
}

/* Whether the word is a field that says who holds the lock. */
static bool is_owner_field(const struct lua_command *command, int word) {
    return word < command->count && command->words[word].argument > 0;
}

static bool is_mode_field(const struct lua_command *command, int word) {
    return span_is(word_text(command, word), "mode");
}

static struct lua_value on_hexists(const struct lua_command *command) {
    if (!is_owner_field(command, 2)) return lua_number(lock_exists(command));
    owner_note_first(command->state, command->words[2]);
    return lua_number(lock_is_own(command));
}

static struct lua_value on_hget(const struct lua_command *command) {
    enum lua_situation situation = command->state->call->situation;
    bool shared = situation == LOCK_IS_SHARED_BY_OTHERS || situation == LOCK_IS_OWN_SHARED;
    if (is_mode_field(command, 2)) command->state->run->has_modes = true;
    if (!lock_exists(command)) return lua_boolean(false);
    if (is_mode_field(command, 2)) return lua_text(shared ? "read" : "write");
    if (is_owner_field(command, 2) && !lock_is_own(command)) return lua_boolean(false);
    return lua_text(command->state->holds[command->lock] > 1 ? "2" : "1");
}

static struct lua_value on_hset(const struct lua_command *command) {
    if (is_owner_field(command, 2)) toy_lock_take(command, command->words[2]);
    else if (is_mode_field(command, 2) && !lock_exists(command)) command->state->fields[command->lock]++;
    else command->state->run->changes = true;
    command->state->exists[command->lock] = true;
    return lua_number(1);
}

static struct lua_value on_hincrby(const struct lua_command *command) {
    struct lua_state *state = command->state;
    struct lua_value number;
    int *holds = &state->holds[command->lock];
    if (command->count < 4 || !lua_to_number(command->words[3], &number)) return lua_some_number(1);
    if (!is_owner_field(command, 2)) {
        state->run->changes = true;
        return lua_some_number(1);
    }
    owner_note_first(state, command->words[2]);
    if (number.number > 0) {
        if (!lock_is_own(command)) *holds = 0;
        toy_lock_take(command, command->words[2]);
    } else {
        state->run->gives = true;
        state->was_touched[command->lock] = true;
        --*holds;
    }
    return lua_number(*holds);
}

static struct lua_value on_hdel(const struct lua_command *command) {
    struct lua_state *state = command->state;
    if (!is_owner_field(command, 2) || !lock_is_own(command)) return lua_number(0);
    state->run->gives = true;
    state->was_touched[command->lock] = true;
    state->is_own[command->lock] = false;
    state->fields[command->lock]--;
    return lua_number(1);
}

static struct lua_value on_hlen(const struct lua_command *command) {
    return lua_number(lock_exists(command) ? command->state->fields[command->lock] : 0);
}

static struct lua_value on_hkeys(const struct lua_command *command) {
    struct lua_value list = lua_table_make(command->state, TABLE_LIST);
    if (!lock_exists(command)) return list;
    lua_table_append(command->state, list, lua_text("mode"));
    if (lock_is_own(command)) lua_table_append(command->state, list, lua_text("owner"));
    return list;
}

/* --- commands on other keys --- */

enum missing_answer { GIVES_FALSE, GIVES_ZERO, GIVES_ONE, GIVES_NO_KEY, GIVES_COUNTER, GIVES_LIST, GIVES_STATUS };

static struct lua_value missing_value(struct lua_state *state, enum missing_answer answer) {
    switch (answer) {
    case GIVES_FALSE: return lua_boolean(false);
    case GIVES_ZERO: return lua_number(0);
    case GIVES_ONE: return lua_number(1);
    case GIVES_NO_KEY: return lua_number(NO_SUCH_KEY);
    case GIVES_COUNTER: return lua_some_number(1);
    case GIVES_LIST: return lua_table_make(state, TABLE_LIST);
    default: return status_value(state, "OK");
    }
}

/* Commands that a script can call: whether they write, how many of their words are keys (-1: all), what they answer on
 * a key that is missing, and what on the lock. */
static const struct lua_server_row {
    const char *name;
    bool writes;
    int keys;
    enum missing_answer missing;
    struct lua_value (*on_lock)(const struct lua_command *command);
} ROWS[] = {
    {"decr", true, 1, GIVES_COUNTER, NULL},
    {"decrby", true, 1, GIVES_COUNTER, NULL},
    {"del", true, -1, GIVES_ZERO, on_delete},
    {"exists", false, -1, GIVES_ZERO, on_exists},
    {"expire", true, 1, GIVES_ZERO, on_expire},
    {"expireat", true, 1, GIVES_ZERO, on_expire},
    {"get", false, 1, GIVES_FALSE, on_get},
    {"getrange", false, 1, GIVES_FALSE, on_get},
    {"getset", true, 1, GIVES_FALSE, on_getset},
    {"hdel", true, 1, GIVES_ZERO, on_hdel},
    {"hexists", false, 1, GIVES_ZERO, on_hexists},
    {"hget", false, 1, GIVES_FALSE, on_hget},
    {"hgetall", false, 1, GIVES_LIST, on_hkeys},
    {"hincrby", true, 1, GIVES_COUNTER, on_hincrby},
    {"hkeys", false, 1, GIVES_LIST, on_hkeys},
    {"hlen", false, 1, GIVES_ZERO, on_hlen},
    {"hmset", true, 1, GIVES_STATUS, on_hset},
    {"hset", true, 1, GIVES_ONE, on_hset},
    {"hsetnx", true, 1, GIVES_ONE, NULL},
    {"incr", true, 1, GIVES_COUNTER, NULL},
    {"incrby", true, 1, GIVES_COUNTER, NULL},
    {"keys", false, 0, GIVES_LIST, NULL},
    {"lindex", false, 1, GIVES_FALSE, NULL},
    {"llen", false, 1, GIVES_ZERO, NULL},
    {"lpop", true, 1, GIVES_FALSE, NULL},
    {"lpush", true, 1, GIVES_COUNTER, NULL},
    {"lrange", false, 1, GIVES_LIST, NULL},
    {"lrem", true, 1, GIVES_ZERO, NULL},
    {"ltrim", true, 1, GIVES_STATUS, NULL},
    {"mget", false, -1, GIVES_LIST, NULL},
    {"persist", true, 1, GIVES_ZERO, on_expire},
    {"pexpire", true, 1, GIVES_ZERO, on_expire},
    {"pexpireat", true, 1, GIVES_ZERO, on_expire},
    {"psetex", true, 1, GIVES_STATUS, on_setex},
    {"pttl", false, 1, GIVES_NO_KEY, on_ttl},
    {"publish", false, 0, GIVES_COUNTER, NULL},
    {"rpop", true, 1, GIVES_FALSE, NULL},
    {"rpush", true, 1, GIVES_COUNTER, NULL},
    {"sadd", true, 1, GIVES_ONE, NULL},
    {"scard", false, 1, GIVES_ZERO, NULL},
    {"set", true, 1, GIVES_STATUS, on_set},
    {"setex", true, 1, GIVES_STATUS, on_setex},
    {"setnx", true, 1, GIVES_ONE, on_setnx},
    {"sismember", false, 1, GIVES_ZERO, NULL},
    {"smembers", false, 1, GIVES_LIST, NULL},
    {"spublish", false, 0, GIVES_COUNTER, NULL},
    {"srem", true, 1, GIVES_ZERO, NULL},
    {"strlen", false, 1, GIVES_ZERO, NULL},
    {"time", false, 0, GIVES_LIST, NULL},
    {"ttl", false, 1, GIVES_NO_KEY, on_ttl},
    {"type", false, 1, GIVES_STATUS, on_type},
    {"unlink", true, -1, GIVES_ZERO, on_delete},
    {"xadd", true, 1, GIVES_COUNTER, NULL},
    {"zadd", true, 1, GIVES_ONE, NULL},
    {"zcard", false, 1, GIVES_ZERO, NULL},
    {"zcount", false, 1, GIVES_ZERO, NULL},
    {"zincrby", true, 1, GIVES_COUNTER, NULL},
    {"zrange", false, 1, GIVES_LIST, NULL},
    {"zrangebyscore", false, 1, GIVES_LIST, NULL},
    {"zrank", false, 1, GIVES_FALSE, NULL},
    {"zrem", true, 1, GIVES_ZERO, NULL},
    {"zremrangebyscore", true, 1, GIVES_ZERO, NULL},
    {"zscore", false, 1, GIVES_FALSE, NULL},
};

static const struct lua_server_row *row_find(struct span name) {
    for (size_t each = 0; each < sizeof ROWS / sizeof ROWS[0]; each++)
        if (span_is_word(name, ROWS[each].name)) return &ROWS[each];
    return NULL;
}

bool lua_script_may_write(const struct lua_script *script, int key) {
    for (int each = 2; each < script->count; each++) {
        const struct lua_token *token = &script->tokens[each], *keys = token + 2, *index = token + 4;
        bool is_call =
            lua_token_is(token - 1, "(") && (lua_token_is(token - 2, "call") || lua_token_is(token - 2, "pcall"));
        const struct lua_server_row *row = is_call && token->kind == LUA_STRING ? row_find(token->text) : NULL;
        if (!row || !row->writes) continue;
        bool is_literal = each + 4 < script->count && lua_token_is(keys, "KEYS") && index->kind == LUA_NUMBER;
        if (!is_literal || index->number == key + 1) return true;
    }
    return false;
}

static void touched_note(struct lua_state *state, int key, bool writes) {
    struct lua_run *run = state->run;
    for (int each = 0; each < run->touched_count; each++) {
        if (run->touched[each].key != key) continue;
        run->touched[each].writes |= writes;
        return;
    }
    if (run->touched_count < LUA_TOUCHED) run->touched[run->touched_count++] = (struct lua_touched){key, writes};
}

/* One key of a command. */
static struct lua_value row_apply(struct lua_command *command, const struct lua_server_row *row, int word) {
    struct lua_state *state = command->state;
    int key = command->words[word].key - 1, lock = state->call->lock;
    touched_note(state, key, row->writes);
    command->lock = key >= 0 && (lock == -1 || lock == key) ? key : -1;
    if (command->lock < 0) return missing_value(state, row->missing);
    if (row->on_lock) return row->on_lock(command);
    if (row->writes) {
        state->run->changes = true;
        state->exists[command->lock] = true;
    }
    return missing_value(state, row->missing);
}

struct lua_value lua_server_call(struct lua_state *state, const struct lua_value *words, int count) {
    struct lua_command command = {state, words, count, -1};
    struct span name = count > 0 ? lua_to_text(state, words[0]) : (struct span){"nothing", 7};
    const struct lua_server_row *row = row_find(name);
    if (!row || count < 1 + (row->keys != 0)) {
        lua_fail(state, "its command ", name);
        return lua_nil();
    }
    if (row->keys == 0) return missing_value(state, row->missing);
    struct lua_value result = row_apply(&command, row, 1);
    for (int word = 2; row->keys < 0 && word < count; word++) {
        struct lua_value more = row_apply(&command, row, word);
        if (result.type == TYPE_NUMBER && more.type == TYPE_NUMBER) result.number += more.number;
    }
    return result;
}

void lua_server_begin(struct lua_state *state) {
    enum lua_situation situation = state->call->situation;
    bool is_own = situation >= LOCK_IS_OWN;
    for (int lock = 0; lock < state->call->key_count && situation != LOCK_IS_FREE; lock++) {
        state->exists[lock] = true;
        state->is_own[lock] = is_own;
        state->holds[lock] = situation == LOCK_IS_OWN_TWICE ? 2 : is_own;
        state->fields[lock] = 2; /* of a hash with modes: the mode, and one owner */
    }
}
