/* What the files of this room share about sessions and the recogniser. */
#pragma once

#include "harness/recogniser/recogniser.h"
#include "harness/recogniser/text/short_text.h"
#include "harness/recogniser/text/text_table.h"

enum {
    OBJECT_ROOM = 256,
    OWNER_ROOM = 128,
    STATEMENT_ROOM = 240,
    UNANSWERED_MOST = 1 << 16, /* requests of one session */
    LOCK_KEYS_MOST = 1 << 16,  /* keys of a Redis that have been locks */
    SCRIPTS_MOST = 1 << 10,
};

struct recogniser {
    struct recogniser_settings settings;
    struct text_table scripts;   /* of Redis, by SHA1 in hexadecimal: struct lua_script */
    struct text_table lock_keys; /* of Redis, by object: struct lock_key; of PostgreSQL, names of tables of leases */
    int sessions;
};

struct wire_session {
    struct recogniser *recogniser;
    int64_t number, statements;
    bool deaf;                      /* requests and answers can no longer be brought together */
    struct postgres_talk *postgres; /* owned; NULL of Redis */
    struct redis_talk *redis;       /* owned; NULL of PostgreSQL */
};

/* When a statement was executed, as events say it. */
struct wire_moment {
    int64_t statement, asked_ns, answered_ns;
};

/* An event without an object. */
struct wire_event wire_event_begin(const struct wire_session *session, enum wire_event_kind kind,
                                   struct wire_moment moment);
void wire_event_hand(const struct wire_session *session, const struct wire_event *event);
void wire_not_recognised(const struct wire_session *session, struct wire_moment moment, const char *text,
                         const char *reason);
/* Nothing that follows in the session can be understood. */
void wire_session_deafen(struct wire_session *session, struct wire_moment moment, const char *reason);

/* Ends an object's name: what was too long for it becomes a hash of `whole`, a hash of all of it. */
void object_end(struct short_text *object, uint64_t whole);

/* Whether a hint of this kind fits the name. */
const struct lock_hint *hint_find(const struct recogniser *recogniser, enum lock_hint_kind kind, struct span name);
