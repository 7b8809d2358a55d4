/* A session with Redis: its database, its transaction, and the commands that are not answered yet.
 *
 * redis_wire.c reads commands and replies and brings them together; redis_commands.c has the table of commands;
 * redis_locks.c says what they do to locks and data, and redis_scripts.c what a script does. */
#pragma once

#include "harness/recogniser/text/sha1.h"
#include "harness/recogniser/wire_session.h"

enum {
    WORDS_MOST = 256, /* of a command */
    WORD_MOST = 512,  /* bytes of a word that are kept */
    QUEUED_MOST = 1 << 12,
    SCRIPT_KEYS = 16,
};

/* One word of a command. */
struct redis_word {
    struct span text; /* its first bytes */
    uint64_t hash;    /* of all of them */
    bool cut;
};

struct redis_value {
    char type; /* as on the wire, but '_' for every null */
    struct span text;
    int64_t number; /* an integer, or a count of elements */
    struct span elements;
};
/* Takes a value, with all that is in it, from the bytes. False: there is no whole one. */
bool redis_value_take(struct span *bytes, struct redis_value *value);

struct redis_request;
struct redis_talk;

enum redis_effect { DOES_NO_ACCESS, DOES_READ, DOES_WRITE, DOES_CHANGE /* reads and writes */, DOES_UNKNOWN };

/* A command: its name, what it does to the keys at words [first, last] in steps; last below 0 counts from the end. */
struct redis_command {
    const char *name;
    enum redis_effect effect;
    int first, last, step;
    void (*asked)(struct redis_talk *talk, struct redis_request *request); /* NULL: nothing */
    void (*done)(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
    bool is_blocking; /* it may wait at the server */
};

/* A command on its way. */
struct redis_request {
    const struct redis_command *command; /* NULL: not known */
    struct wire_moment moment;
    struct redis_word *words; /* owned; the texts are behind them */
    int word_count;
    bool more_words;
    int database;
    bool in_multi;
    int64_t transaction;
    int replies;              /* that are still to come: of SUBSCRIBE one for each channel */
    char script[SHA1_HEX];    /* of EVAL and EVALSHA: its name */
    struct script_plan *plan; /* owned: of a script; or NULL */
};

struct redis_talk {
    struct wire_session *session;
    struct redis_request **requests; /* owned: a ring */
    size_t request_room, request_first, request_count;
    struct redis_request **queued; /* owned: of MULTI, in their order */
    int queued_count, queued_room;
    int database;  /* of requests to come */
    bool in_multi; /* requests to come are queued */
    int64_t transaction;
    bool is_watching, has_subscribed;
};

/* --- redis_wire.c --- */

struct redis_talk *redis_talk_begin(struct wire_session *session);
void redis_talk_request(struct redis_talk *talk, struct span message, int64_t at_ns);
void redis_talk_answer(struct redis_talk *talk, struct span message, int64_t at_ns);
/* Frees it. */
void redis_talk_end(struct redis_talk *talk, int64_t at_ns);
/* The request was executed; events are handed. */
void redis_request_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);

/* --- redis_commands.c --- */

const struct redis_command *redis_command_find(struct span name);

/* --- redis_locks.c --- */

/* An event of a request. `text` has STATEMENT_ROOM bytes, and becomes its text. */
struct wire_event redis_event(const struct redis_talk *talk, const struct redis_request *request,
                              enum wire_event_kind kind, char *text);
/* "redis stock:7" */
void redis_object(const struct redis_request *request, int word, char object[static OBJECT_ROOM]);
/* Remembers that a key is a lock; `owner`: who has it now; NULL: nobody that is known. */
void lock_key_note(const struct redis_talk *talk, const char *object, const char *owner);
/* Whether the key has been a lock, or a hint says so. */
bool lock_key_is(const struct redis_talk *talk, const struct redis_request *request, int word);
/* Whether the last grant of it that was seen was to this owner, and it has not been given back. */
bool lock_key_is_owned(const struct redis_talk *talk, const struct redis_request *request, int word, const char *owner);
/* The reads and writes of a command that does nothing else. */
void redis_accesses_hand(const struct redis_talk *talk, struct redis_request *request);
void redis_access_hand(const struct redis_talk *talk, const struct redis_request *request, int word,
                       enum redis_effect effect);
/* Hands a lock event of one key. */
void redis_lock_hand(const struct redis_talk *talk, const struct redis_request *request, enum wire_event_kind kind,
                     int word, const struct wire_event *like);
void redis_not_recognised(const struct redis_talk *talk, const struct redis_request *request, const char *reason);
/* A word as a number; `or` if it is not one. */
int64_t redis_word_number(const struct redis_request *request, int word, int64_t or);
void redis_owner_copy(const struct redis_word *word, char owner[static OWNER_ROOM]);

void set_asked(struct redis_talk *talk, struct redis_request *request);
void set_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void setnx_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void delete_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void expire_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void pop_asked(struct redis_talk *talk, struct redis_request *request);
void pop_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void push_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);

/* --- redis_scripts.c --- */

struct script_plan;
/* Remembers the script of an EVAL or SCRIPT LOAD, and gives its name. */
void script_remember(struct recogniser *recogniser, struct span text, char name[static SHA1_HEX]);
/* The name that EVALSHA gives, in small letters. */
void script_name_copy(struct span word, char name[static SHA1_HEX]);
void script_asked(struct redis_talk *talk, struct redis_request *request);
void script_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);

/* --- redis_wire.c, of the table --- */

void select_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void multi_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void exec_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void discard_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void watch_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
void flush_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply);
