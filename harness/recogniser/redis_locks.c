#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/recogniser/redis_talk.h"

/* What single commands do to locks and data. A key is a lock from when it was set with NX, or by a hint. */

struct lock_key {
    char owner[OWNER_ROOM]; /* of the last grant; empty: it was given back, or is not known */
};

/* --- events --- */

enum { SCRIPT_SAID = 40 }; /* bytes of a script in the text of its command */

/* The command as a person would type it; passwords are left out. */
static void command_print(const struct redis_request *request, char *bytes) {
    struct short_text text = short_text_in(bytes, STATEMENT_ROOM);
    static const char *const SECRETS[] = {"auth", "hello", "acl", "config", "migrate"};
    bool is_secret = false;
    for (size_t each = 0; each < sizeof SECRETS / sizeof SECRETS[0]; each++)
        is_secret |= span_is_word(request->words[0].text, SECRETS[each]);
    bool is_script = request->script[0];
    for (int word = 0; word < request->word_count && !text.cut; word++) {
        struct span said = request->words[word].text;
        bool is_long = request->words[word].cut || (is_script && word == 1 && said.length > SCRIPT_SAID);
        if (is_script && is_long) said.length = SCRIPT_SAID;
        if (word > 0) short_text_say(&text, " ");
        short_text_add(&text, said);
        if (is_long) short_text_say(&text, "...");
        if (is_secret) break;
    }
    if (text.cut) memcpy(text.bytes + text.length - 3, "...", 3);
    for (size_t each = 0; each < text.length; each++)
        if (isspace((unsigned char)text.bytes[each]) || text.bytes[each] == '\0') text.bytes[each] = ' ';
}

struct wire_event redis_event(const struct redis_talk *talk, const struct redis_request *request,
                              enum wire_event_kind kind, char *text) {
    struct wire_event event = wire_event_begin(talk->session, kind, request->moment);
    if (kind == LOCK_ASKED) event.answered_ns = event.asked_ns;
    command_print(request, text);
    event.text = text;
    event.transaction = request->transaction;
    event.in_transaction = request->in_multi;
    return event;
}

void redis_not_recognised(const struct redis_talk *talk, const struct redis_request *request, const char *reason) {
    char text[STATEMENT_ROOM];
    struct wire_event event = redis_event(talk, request, STATEMENT_NOT_RECOGNISED, text);
    event.reason = reason;
    wire_event_hand(talk->session, &event);
}

void redis_object(const struct redis_request *request, int word, char object[static OBJECT_ROOM]) {
    struct short_text text = short_text_in(object, OBJECT_ROOM);
    const struct redis_word *key = &request->words[word];
    char database[24] = "redis ";
    assert(word < request->word_count);
    if (request->database != 0) snprintf(database, sizeof database, "redis/%d ", request->database);
    short_text_say(&text, database);
    short_text_add(&text, key->text);
    text.cut |= key->cut;
    object_end(&text, key->hash);
    for (size_t each = 0; each < text.length; each++)
        if (text.bytes[each] == '\0') text.bytes[each] = ' ';
}

void redis_owner_copy(const struct redis_word *word, char owner[static OWNER_ROOM]) {
    struct short_text text = short_text_in(owner, OWNER_ROOM);
    short_text_add(&text, word->text);
    object_end(&text, word->hash);
    for (size_t each = 0; each < text.length; each++)
        if (text.bytes[each] == '\0') text.bytes[each] = ' ';
}

int64_t redis_word_number(const struct redis_request *request, int word, int64_t or) {
    if (word >= request->word_count) return or ;
    struct span text = request->words[word].text;
    bool negative = text.length > 0 && text.bytes[0] == '-';
    int64_t number = 0;
    if (text.length == negative) return or ;
    for (size_t each = negative; each < text.length; each++) {
        if (!isdigit((unsigned char)text.bytes[each]) || number > INT64_MAX / 10000) return or ;
        number = number * 10 + (text.bytes[each] - '0');
    }
    return negative ? -number : number;
}

/* --- which keys are locks --- */

void lock_key_note(const struct redis_talk *talk, const char *object, const char *owner) {
    struct lock_key *key = calloc(1, sizeof *key);
    if (!key) abort();
    struct short_text text = short_text_in(key->owner, sizeof key->owner);
    if (owner) short_text_say(&text, owner);
    text_table_put(&talk->session->recogniser->lock_keys, text_span(object), key); /* the newest one now */
}

static bool has_hint(const struct redis_talk *talk, const struct redis_request *request, enum lock_hint_kind kind,
                     int word) {
    return hint_find(talk->session->recogniser, kind, request->words[word].text);
}

bool lock_key_is(const struct redis_talk *talk, const struct redis_request *request, int word) {
    char object[OBJECT_ROOM];
    redis_object(request, word, object);
    return has_hint(talk, request, HINT_KEY, word) ||
           text_table_find(&talk->session->recogniser->lock_keys, text_span(object));
}

/* Who was granted the lock last, as far as it was seen. */
static const char *lock_key_owner(const struct redis_talk *talk, const char *object) {
    const struct lock_key *key = text_table_find(&talk->session->recogniser->lock_keys, text_span(object));
    static const char NOBODY[OWNER_ROOM] = "";
    return key ? key->owner : NOBODY;
}

bool lock_key_is_owned(const struct redis_talk *talk, const struct redis_request *request, int word,
                       const char *owner) {
    char object[OBJECT_ROOM];
    redis_object(request, word, object);
    return *owner && strcmp(lock_key_owner(talk, object), owner) == 0;
}

/* --- accesses --- */

void redis_access_hand(const struct redis_talk *talk, const struct redis_request *request, int word,
                       enum redis_effect effect) {
    char text[STATEMENT_ROOM], object[OBJECT_ROOM];
    bool writes = effect == DOES_WRITE || effect == DOES_CHANGE;
    struct wire_event event = redis_event(talk, request, writes ? ACCESS_WRITE : ACCESS_READ, text);
    redis_object(request, word, object);
    event.object = object;
    event.of_lock = lock_key_is(talk, request, word) || has_hint(talk, request, HINT_LIST, word);
    event.relative = effect == DOES_CHANGE;
    event.conditional = writes && request->in_multi && talk->is_watching;
    wire_event_hand(talk->session, &event);
}

void redis_accesses_hand(const struct redis_talk *talk, struct redis_request *request) {
    const struct redis_command *command = request->command;
    if (command->effect == DOES_NO_ACCESS) return;
    int last = command->last < 0 ? request->word_count + command->last : command->last;
    for (int word = command->first; word <= last && word < request->word_count; word += command->step)
        redis_access_hand(talk, request, word, command->effect);
    if (request->more_words && command->last < 0)
        redis_not_recognised(talk, request, "it has more keys than are looked at");
}

/* --- locks --- */

void redis_lock_hand(const struct redis_talk *talk, const struct redis_request *request, enum wire_event_kind kind,
                     int word, const struct wire_event *like) {
    char text[STATEMENT_ROOM], object[OBJECT_ROOM];
    struct wire_event event = redis_event(talk, request, kind, text);
    redis_object(request, word, object);
    event.object = object;
    event.lock = like->lock == LOCK_OF_NOTHING ? LOCK_KEY : like->lock;
    event.mode = like->mode;
    event.owner = like->owner;
    event.refusal = like->refusal;
    event.reason = like->reason;
    bool has_lease = kind == LOCK_ASKED || kind == LOCK_GRANTED || kind == LOCK_EXTENDED;
    if (has_lease) event.lease_ms = like->lease_ms;
    event.waits = kind == LOCK_ASKED && request->command && request->command->is_blocking;
    event.reenters = like->reenters;
    char before[OWNER_ROOM];
    memcpy(before, lock_key_owner(talk, object), sizeof before);
    /* A script may grant what its owner has; NX only what nobody has. */
    if (kind == LOCK_GRANTED && request->plan && *event.owner && strcmp(before, event.owner) == 0)
        event.reenters = true;
    if (kind == LOCK_ASKED || kind == LOCK_REFUSED) lock_key_note(talk, object, before);
    if (kind == LOCK_GRANTED) lock_key_note(talk, object, event.owner);
    if (kind == LOCK_RELEASED && !event.reenters) lock_key_note(talk, object, NULL);
    wire_event_hand(talk->session, &event);
}

static struct wire_event like_nothing(void) {
    return (struct wire_event){.owner = "", .reason = "", .object = "", .text = ""};
}

static bool is_failure(const struct redis_value *reply) {
    return reply->type == '-' || reply->type == '!';
}

/* SET key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]; SETNX key value */
struct set_options {
    bool only_free, only_there, gets;
    int64_t lease_ms;
    char owner[OWNER_ROOM];
};

static bool option_is(const struct redis_request *request, int word, const char *name) {
    return span_is_word(request->words[word].text, name);
}

static struct set_options set_options_read(const struct redis_request *request) {
    struct set_options options = {.only_free = span_is_word(request->words[0].text, "setnx")};
    if (request->word_count > 2) redis_owner_copy(&request->words[2], options.owner);
    for (int word = 3; word < request->word_count; word++) {
        int64_t number = redis_word_number(request, word + 1, -1);
        if (option_is(request, word, "nx")) options.only_free = true;
        if (option_is(request, word, "xx")) options.only_there = true;
        if (option_is(request, word, "get")) options.gets = true;
        if (option_is(request, word, "px")) options.lease_ms = number;
        if (option_is(request, word, "ex")) options.lease_ms = number < 0 ? -1 : number * 1000;
        if (option_is(request, word, "exat") || option_is(request, word, "pxat") || option_is(request, word, "keepttl"))
            options.lease_ms = -1;
    }
    return options;
}

/* Whether the command asks for a lock. */
static bool set_is_ask(const struct redis_talk *talk, const struct redis_request *request,
                       const struct set_options *options) {
    if (request->word_count < 3) return false;
    if (options->only_free) return !has_hint(talk, request, HINT_NO_KEY, 1);
    return has_hint(talk, request, HINT_KEY, 1) && !options->only_there;
}

void set_asked(struct redis_talk *talk, struct redis_request *request) {
    struct set_options options = set_options_read(request);
    struct wire_event like = like_nothing();
    if (!set_is_ask(talk, request, &options)) return;
    like.owner = options.owner;
    like.lease_ms = options.lease_ms;
    redis_lock_hand(talk, request, LOCK_ASKED, 1, &like);
}

static void ask_answered(struct redis_talk *talk, struct redis_request *request, const struct set_options *options,
                         const struct redis_value *reply, bool granted) {
    struct wire_event like = like_nothing();
    char reason[64];
    struct short_text said = short_text_in(reason, sizeof reason);
    like.owner = options->owner;
    like.lease_ms = options->lease_ms;
    like.refusal = granted ? NOT_REFUSED : is_failure(reply) ? REFUSED_ERROR : REFUSED_HELD;
    if (is_failure(reply)) short_text_add(&said, reply->text);
    like.reason = reason;
    redis_lock_hand(talk, request, granted ? LOCK_GRANTED : LOCK_REFUSED, 1, &like);
}

void set_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    struct set_options options = set_options_read(request);
    bool is_nothing = reply->type == '_';
    if (set_is_ask(talk, request, &options)) {
        bool granted = !is_failure(reply) && (options.gets && options.only_free ? is_nothing : !is_nothing);
        ask_answered(talk, request, &options, reply, granted);
        return;
    }
    if (is_failure(reply) || request->word_count < 3) return;
    /* The owner writes its own value again: it makes the lease longer. */
    bool is_owner = lock_key_is_owned(talk, request, 1, options.owner);
    if (lock_key_is(talk, request, 1) && options.only_there && is_owner) {
        struct wire_event like = like_nothing();
        like.owner = options.owner;
        like.lease_ms = options.lease_ms;
        like.refusal = is_nothing ? REFUSED_NOT_HELD : NOT_REFUSED;
        redis_lock_hand(talk, request, is_nothing ? LOCK_EXTEND_REFUSED : LOCK_EXTENDED, 1, &like);
        return;
    }
    bool did_not = is_nothing && (options.only_there || options.only_free) && !options.gets;
    redis_access_hand(talk, request, 1, did_not ? DOES_READ : DOES_WRITE);
}

void setnx_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    struct set_options options = set_options_read(request);
    bool set = reply->type == ':' && reply->number == 1;
    if (set_is_ask(talk, request, &options)) ask_answered(talk, request, &options, reply, set);
    else if (!is_failure(reply) && request->word_count > 2)
        redis_access_hand(talk, request, 1, set ? DOES_CHANGE : DOES_READ);
}

/* DEL, UNLINK and GETDEL. */
void delete_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    int keys = span_is_word(request->words[0].text, "getdel") ? 1 : request->word_count - 1;
    if (is_failure(reply)) return;
    int64_t gone = reply->type == ':' ? reply->number : reply->type != '_';
    bool some = gone > 0 && (gone < keys || request->more_words);
    for (int word = 1; word <= keys; word++) {
        struct wire_event like = like_nothing();
        if (!lock_key_is(talk, request, word)) {
            redis_access_hand(talk, request, word, gone > 0 ? DOES_WRITE : DOES_READ);
            continue;
        }
        if (some) like.reason = "of its keys not all were there, and which is not known";
        if (gone == 0) like.refusal = REFUSED_NOT_HELD;
        redis_lock_hand(talk, request, gone > 0 ? LOCK_RELEASED : LOCK_RELEASE_REFUSED, word, &like);
    }
    if (request->more_words) redis_not_recognised(talk, request, "it has more keys than are looked at");
}

/* EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT and PERSIST. */
void expire_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    struct span name = request->words[0].text;
    struct wire_event like = like_nothing();
    bool set = reply->type == ':' && reply->number == 1;
    if (is_failure(reply) || request->word_count < 2) return;
    if (!lock_key_is(talk, request, 1)) {
        redis_access_hand(talk, request, 1, set ? DOES_WRITE : DOES_READ);
        return;
    }
    int64_t number = redis_word_number(request, 2, -1);
    like.lease_ms = -1;
    if (span_is_word(name, "persist")) like.lease_ms = 0;
    if (span_is_word(name, "pexpire")) like.lease_ms = number;
    if (span_is_word(name, "expire")) like.lease_ms = number < 0 ? -1 : number * 1000;
    like.refusal = set ? NOT_REFUSED : REFUSED_NOT_HELD;
    redis_lock_hand(talk, request, set ? LOCK_EXTENDED : LOCK_EXTEND_REFUSED, 1, &like);
}

/* --- lists as locks --- */

/* The last key of a pop; the first one is word 1. */
static int last_popped(const struct redis_request *request) {
    return request->command->is_blocking ? request->word_count - 2 : 1;
}

static bool is_lock_list(const struct redis_talk *talk, const struct redis_request *request, int word) {
    return word < request->word_count && has_hint(talk, request, HINT_LIST, word);
}

void pop_asked(struct redis_talk *talk, struct redis_request *request) {
    struct wire_event like = like_nothing();
    like.lock = LOCK_LIST_POP;
    for (int word = 1; word <= last_popped(request); word++)
        if (is_lock_list(talk, request, word)) redis_lock_hand(talk, request, LOCK_ASKED, word, &like);
}

/* The reply of a blocking pop is the key and the element. */
static bool popped_from(const struct redis_request *request, int word, const struct redis_value *reply,
                        struct span *element) {
    struct span elements = reply->elements;
    struct redis_value key, value;
    *element = reply->text;
    if (reply->type == '_') return false;
    if (reply->type != '*') return true;
    if (!redis_value_take(&elements, &key)) return false;
    *element = key.text;
    if (!request->command->is_blocking) return true;
    if (!redis_value_take(&elements, &value)) return false;
    *element = value.text;
    return text_hash(key.text) == request->words[word].hash;
}

void pop_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    bool waits = request->command->is_blocking;
    if (is_failure(reply)) return;
    for (int word = 1; word <= last_popped(request) && word < request->word_count; word++) {
        struct wire_event like = like_nothing();
        struct redis_word element = {0};
        char owner[OWNER_ROOM];
        bool got = popped_from(request, word, reply, &element.text);
        if (!is_lock_list(talk, request, word)) {
            redis_access_hand(talk, request, word, got ? DOES_CHANGE : DOES_READ);
            continue;
        }
        element.hash = text_hash(element.text);
        redis_owner_copy(&element, owner);
        like.lock = LOCK_LIST_POP;
        if (got) like.owner = owner;
        else like.refusal = waits ? REFUSED_TIMEOUT : REFUSED_HELD;
        redis_lock_hand(talk, request, got ? LOCK_GRANTED : LOCK_REFUSED, word, &like);
    }
}

void push_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    struct wire_event like = like_nothing();
    if (is_failure(reply) || request->word_count < 3) return;
    like.lock = LOCK_LIST_POP;
    if (is_lock_list(talk, request, 1)) redis_lock_hand(talk, request, LOCK_RELEASED, 1, &like);
    else redis_access_hand(talk, request, 1, DOES_CHANGE);
}
