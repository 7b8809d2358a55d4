/* Runs a script in a toy server, to see what it does to a lock and what it answers.
 *
 * The toy server has one lock, in a situation that the caller chooses: free, held by others, or held by the caller.
 * All other keys are missing, as they are when nothing else is going on. What the lock is made of, a string or a hash,
 * follows from how the script looks at it: GET gives a value that is equal to every ARGV for its owner and to nothing
 * for others; HEXISTS finds the owner's field. The script runs with the words that it was called with. What the toy
 * server or this interpreter lacks (functions, coroutines, cjson) ends the run, and is said. Source: the reference
 * manual of Lua 5.1, and Redis' documentation, "Scripting with Lua". */
#pragma once

#include "harness/recogniser/lua/lua_script.h"

enum lua_situation {
    LOCK_IS_FREE,
    LOCK_IS_OTHERS,
    LOCK_IS_SHARED_BY_OTHERS, /* a lock of readers and writers; others read */
    LOCK_IS_OWN,
    LOCK_IS_OWN_SHARED, /* the caller reads, and nobody else */
    LOCK_IS_OWN_TWICE,  /* the caller has acquired it two times */
    LUA_SITUATIONS,
};

enum { LUA_KEYS = 16, LUA_ARGUMENTS = 64, LUA_TOUCHED = 16, LUA_ELEMENTS = 16, LUA_OWNER = 513, LUA_REASON = 80 };

struct lua_call {
    const struct lua_script *script;
    struct span keys[LUA_KEYS], arguments[LUA_ARGUMENTS];
    int key_count, argument_count;
    int lock; /* the KEYS that is the lock, from 0; -1: each of them is one, and all are in the same situation */
    enum lua_situation situation;
};

enum lua_answer_kind { ANSWER_NULL, ANSWER_NUMBER, ANSWER_TEXT, ANSWER_STATUS, ANSWER_ERROR, ANSWER_LIST };

struct lua_answer {
    enum lua_answer_kind kind;
    int64_t number; /* also: how many elements a list has */
    bool is_known;  /* the number is the same on every server: no time to live, no counter */
};

/* A key that it read or wrote. */
struct lua_touched {
    int key; /* of KEYS, from 0; -1: it has made the name up */
    bool writes;
};

struct lua_run {
    char reason[LUA_REASON]; /* why it was not understood; empty: it was */
    struct lua_answer answer, elements[LUA_ELEMENTS];
    bool takes;     /* the lock was made, or one more hold of it */
    bool gives;     /* the hold was taken away */
    bool deletes;   /* the lock is gone */
    bool extends;   /* it was given a lease, or set again to the same owner */
    bool changes;   /* something else of it was changed */
    bool has_modes; /* it is a lock of readers and writers */
    int locks_made; /* of several keys: how many it made, gave away or extended */
    char owner[LUA_OWNER];
    int64_t lease_ms; /* 0: without end, or not said; -1: not known */
    struct lua_touched touched[LUA_TOUCHED];
    int touched_count;
};

/* Whether a call that writes stands in its text, perhaps behind a condition that no run fulfils: to this key of KEYS,
 * from 0, or to one that the text does not number. */
bool lua_script_may_write(const struct lua_script *script, int key);

void lua_run(const struct lua_call *call, struct lua_run *run);
