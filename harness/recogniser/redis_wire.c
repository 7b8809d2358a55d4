#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/recogniser/redis_talk.h"

/* RESP2 and RESP3: each command has one reply, in the order of the commands, but for messages on channels and other
 * pushes, which belong to no command. */

/* --- values --- */

/* The line that the bytes begin with, without its type and its end. False: it does not end. */
static bool line_take(struct span *bytes, struct span *line) {
    const char *end = bytes->bytes, *limit = bytes->bytes + bytes->length;
    do {
        end = end < limit ? memchr(end, '\n', (size_t)(limit - end)) : NULL;
        if (!end) return false;
        end++;
    } while (end - bytes->bytes < 3 || end[-2] != '\r');
    *line = (struct span){bytes->bytes + 1, (size_t)(end - 2 - (bytes->bytes + 1))};
    *bytes = (struct span){end, (size_t)(limit - end)};
    return true;
}

static int64_t line_number(struct span line) {
    bool negative = line.length > 0 && line.bytes[0] == '-';
    int64_t number = 0;
    for (size_t each = negative; each < line.length; each++) {
        if (!isdigit((unsigned char)line.bytes[each]) || number > INT64_MAX / 100) return negative ? -number : number;
        number = number * 10 + (line.bytes[each] - '0');
    }
    return negative ? -number : number;
}

static bool bulk_take(struct span *bytes, struct redis_value *value) {
    size_t length = (size_t)value->number;
    if (bytes->length < 2 || length > bytes->length - 2) return false;
    value->text = (struct span){bytes->bytes, length};
    *bytes = (struct span){bytes->bytes + length + 2, bytes->length - length - 2};
    return true;
}

/* One value without its elements; *inside: how many values follow that belong to it. */
static bool head_take(struct span *bytes, struct redis_value *value, int64_t *inside) {
    struct span line;
    if (bytes->length == 0) return false;
    *value = (struct redis_value){.type = bytes->bytes[0]};
    *inside = 0;
    if (!memchr("+-:,#(_$!=*~>%|", value->type, 15) || !line_take(bytes, &line)) return false;
    value->text = line;
    value->number = line_number(line);
    if (memchr("+-:,#(_", value->type, 7)) return true;
    if (value->number < 0) {
        value->type = '_';
        value->text.length = 0;
        return true;
    }
    if (memchr("$!=", value->type, 3)) return bulk_take(bytes, value);
    if (value->number > INT64_MAX / 4) return false;
    *inside = value->type == '%' || value->type == '|' ? 2 * value->number : value->number;
    return true;
}

bool redis_value_take(struct span *bytes, struct redis_value *value) {
    struct redis_value element;
    int64_t left, inside;
    do { /* attributes stand in front of the value */
        if (!head_take(bytes, value, &left)) return false;
        value->elements = *bytes;
        for (; left > 0; left += inside - 1)
            if (left > INT64_MAX / 4 || !head_take(bytes, &element, &inside)) return false;
        value->elements.length -= bytes->length;
    } while (value->type == '|');
    return true;
}

/* --- requests on their way --- */

static struct redis_request *request_at(const struct redis_talk *talk, size_t at) {
    return talk->requests[(talk->request_first + at) % talk->request_room];
}

static void request_free(struct redis_request *request) {
    free(request->words);
    free(request->plan);
    free(request);
}

static void request_push(struct redis_talk *talk, struct redis_request *request) {
    if (talk->request_count == talk->request_room) {
        size_t room = talk->request_room ? 2 * talk->request_room : 16;
        struct redis_request **requests = malloc(room * sizeof *requests);
        if (!requests) abort();
        for (size_t each = 0; each < talk->request_count; each++) requests[each] = request_at(talk, each);
        free(talk->requests);
        talk->requests = requests;
        talk->request_room = room;
        talk->request_first = 0;
    }
    talk->requests[(talk->request_first + talk->request_count++) % talk->request_room] = request;
}

static struct redis_request *request_pop(struct redis_talk *talk) {
    struct redis_request *request = request_at(talk, 0);
    talk->request_first = (talk->request_first + 1) % talk->request_room;
    talk->request_count--;
    return request;
}

/* --- a command --- */

/* The next word of a command: an element of an array, or a word of a line. */
static bool command_word_take(struct span *bytes, bool is_inline, int64_t *left, struct span *word) {
    struct redis_value value;
    if (!is_inline) {
        if ((*left)-- <= 0 || !redis_value_take(bytes, &value)) return false;
        *word = value.text;
        return true;
    }
    size_t at = 0;
    while (at < bytes->length && isspace((unsigned char)bytes->bytes[at])) at++;
    size_t begin = at;
    while (at < bytes->length && !isspace((unsigned char)bytes->bytes[at])) at++;
    *word = (struct span){bytes->bytes + begin, at - begin};
    *bytes = (struct span){bytes->bytes + at, bytes->length - at};
    return word->length > 0;
}

/* Where the words of a command begin, and how many there are. False: it is no command. */
static bool command_open(struct span *message, bool *is_inline, int64_t *count) {
    struct span line;
    *is_inline = message->length > 0 && message->bytes[0] != '*';
    *count = INT32_MAX;
    if (*is_inline) return true;
    if (!line_take(message, &line)) return false;
    *count = line_number(line);
    return true;
}

/* Copies the words, each as far as it is kept; *second: all of the second one. */
static struct redis_request *request_make(struct span message, struct span *second) {
    struct span rest = message, word;
    bool is_inline;
    int64_t left;
    size_t bytes = 0;
    int count = 0;
    if (!command_open(&rest, &is_inline, &left)) return NULL;
    struct span begin = rest;
    int64_t all = left;
    for (; count < WORDS_MOST && command_word_take(&rest, is_inline, &left, &word); count++)
        bytes += word.length < WORD_MOST ? word.length : WORD_MOST;
    struct redis_request *request = calloc(1, sizeof *request);
    if (!request || count == 0) {
        free(request);
        return NULL;
    }
    request->more_words = count == WORDS_MOST && command_word_take(&rest, is_inline, &left, &word);
    request->words = malloc((size_t)count * sizeof *request->words + bytes);
    if (!request->words) abort();
    char *at = (char *)(request->words + count);
    for (rest = begin, left = all; request->word_count < count; request->word_count++) {
        command_word_take(&rest, is_inline, &left, &word);
        if (request->word_count == 1) *second = word;
        struct redis_word *kept = &request->words[request->word_count];
        *kept = (struct redis_word){.hash = text_hash(word), .cut = word.length > WORD_MOST};
        kept->text = (struct span){at, kept->cut ? WORD_MOST : word.length};
        if (kept->text.length > 0) memcpy(at, word.bytes, kept->text.length);
        at += kept->text.length;
    }
    return request;
}

static bool command_is(const struct redis_request *request, const char *name) {
    return span_is_word(request->words[0].text, name);
}

static bool command_word_is(const struct redis_request *request, int word, const char *text) {
    return word < request->word_count && span_is_word(request->words[word].text, text);
}

static bool is_subscription(const struct redis_request *request) {
    struct span name = request->words[0].text;
    return name.length >= 9 && strncasecmp(name.bytes + name.length - 9, "subscribe", 9) == 0;
}

/* What a request does to those that follow it, before its answer is there. */
static void request_foresee(struct redis_talk *talk, struct redis_request *request, struct span second) {
    struct recogniser *recogniser = talk->session->recogniser;
    request->database = talk->database;
    if (command_is(request, "select")) talk->database = (int)redis_word_number(request, 1, 0);
    if (command_is(request, "reset")) talk->database = 0;
    if (command_is(request, "multi") && !talk->in_multi) talk->transaction++;
    request->transaction = talk->transaction;
    bool ends = command_is(request, "exec") || command_is(request, "discard") || command_is(request, "reset");
    bool begins = command_is(request, "multi");
    request->in_multi = talk->in_multi && !ends && !begins;
    if (!talk->in_multi && !begins) request->transaction = 0;
    talk->in_multi = (talk->in_multi || begins) && !ends;
    bool subscribes = is_subscription(request);
    talk->has_subscribed |= subscribes;
    request->replies = subscribes && request->word_count > 2 ? request->word_count - 1 : 1;
    if (command_is(request, "eval") || command_is(request, "eval_ro"))
        script_remember(recogniser, second, request->script);
    else if (command_is(request, "evalsha") || command_is(request, "evalsha_ro"))
        script_name_copy(second, request->script);
}

/* Commands after which requests and answers cannot be brought together any more. */
static const char *why_deaf(const struct redis_request *request) {
    if (command_is(request, "monitor")) return "MONITOR: the session shows what others do";
    if (command_is(request, "sync") || command_is(request, "psync")) return "the session is a replica's";
    if (command_is(request, "client") && command_word_is(request, 1, "reply") && !command_word_is(request, 2, "on"))
        return "CLIENT REPLY: commands have no answers";
    return NULL;
}

/* The third word of SCRIPT LOAD is the script: all of it. */
static void loaded_script_remember(struct redis_talk *talk, const struct redis_request *request, struct span message) {
    bool is_inline;
    int64_t left;
    struct span word = {0};
    if (!command_is(request, "script") || !command_word_is(request, 1, "load")) return;
    if (!command_open(&message, &is_inline, &left)) return;
    char name[SHA1_HEX];
    for (int each = 0; each < 3; each++)
        if (!command_word_take(&message, is_inline, &left, &word)) return;
    script_remember(talk->session->recogniser, word, name);
}

static void command_request(struct redis_talk *talk, struct span message, int64_t at_ns) {
    struct span second = {"", 0};
    struct redis_request *request = request_make(message, &second);
    if (!request) return; /* an empty line or array: the server does not answer it */
    request->moment = (struct wire_moment){++talk->session->statements, at_ns, at_ns};
    request->command = redis_command_find(request->words[0].text);
    request_foresee(talk, request, second);
    loaded_script_remember(talk, request, message);
    const char *deaf = why_deaf(request);
    if (!deaf && talk->request_count == UNANSWERED_MOST) deaf = "too many requests wait for answers";
    if (deaf) wire_session_deafen(talk->session, request->moment, deaf);
    else if (request->command && request->command->asked) request->command->asked(talk, request);
    request_push(talk, request);
}

/* The command at the beginning of the bytes. */
static struct span command_take(struct span *bytes) {
    struct redis_value value;
    struct span begin = *bytes;
    if (begin.bytes[0] == '*') {
        if (!redis_value_take(bytes, &value)) return (struct span){NULL, 0};
    } else {
        const char *newline = memchr(begin.bytes, '\n', begin.length);
        size_t length = newline ? (size_t)(newline + 1 - begin.bytes) : begin.length;
        *bytes = (struct span){begin.bytes + length, begin.length - length};
    }
    return (struct span){begin.bytes, begin.length - bytes->length};
}

void redis_talk_request(struct redis_talk *talk, struct span message, int64_t at_ns) {
    while (message.length > 0 && !talk->session->deaf) {
        struct span command = command_take(&message);
        if (!command.bytes) {
            struct wire_moment moment = {talk->session->statements, at_ns, at_ns};
            wire_session_deafen(talk->session, moment, "a request that is not RESP: is it encrypted?");
            return;
        }
        command_request(talk, command, at_ns);
    }
}

/* --- replies --- */

/* What a push or a message on a channel calls itself; without bytes if the value is an ordinary reply. */
static struct span push_kind(const struct redis_talk *talk, const struct redis_value *reply) {
    struct span elements = reply->elements;
    struct redis_value first;
    bool may_be = reply->type == '>' || (reply->type == '*' && talk->has_subscribed);
    if (!may_be || reply->number < 1 || !redis_value_take(&elements, &first)) return (struct span){NULL, 0};
    return first.text;
}

static bool ends_as(struct span text, const char *end) {
    size_t length = strlen(end);
    return text.length >= length && memcmp(text.bytes + text.length - length, end, length) == 0;
}

static void request_queue(struct redis_talk *talk, struct redis_request *request) {
    if (talk->queued_count == QUEUED_MOST) {
        redis_not_recognised(talk, request, "MULTI has more commands than are remembered");
        request_free(request);
        return;
    }
    if (talk->queued_count == talk->queued_room) {
        talk->queued_room = talk->queued_room ? 2 * talk->queued_room : 16;
        talk->queued = realloc(talk->queued, (size_t)talk->queued_room * sizeof *talk->queued);
        if (!talk->queued) abort();
    }
    talk->queued[talk->queued_count++] = request;
}

void redis_request_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    bool failed = reply->type == '-' || reply->type == '!';
    if (!request->command) {
        if (!failed) redis_not_recognised(talk, request, "the command is not known");
    } else if (request->command->done) {
        request->command->done(talk, request, reply);
    } else if (!failed) {
        redis_accesses_hand(talk, request);
    }
}

static void reply_answer(struct redis_talk *talk, const struct redis_value *reply, int64_t at_ns) {
    struct span kind = push_kind(talk, reply);
    bool of_subscription = ends_as(kind, "subscribe");
    if (ends_as(kind, "message") || (reply->type == '>' && !of_subscription)) return;
    if (talk->request_count == 0) return; /* to a request that was not seen */
    struct redis_request *request = request_at(talk, 0);
    if (of_subscription && !span_is_word(kind, "")) {
        bool is_its = is_subscription(request);
        if (!is_its || --request->replies > 0) return;
    }
    request = request_pop(talk);
    request->moment.answered_ns = at_ns;
    if (request->in_multi && reply->type == '+' && span_is(reply->text, "QUEUED")) {
        request_queue(talk, request);
        return;
    }
    redis_request_done(talk, request, reply);
    request_free(request);
}

void redis_talk_answer(struct redis_talk *talk, struct span message, int64_t at_ns) {
    while (message.length > 0 && !talk->session->deaf) {
        struct redis_value reply;
        if (!redis_value_take(&message, &reply)) {
            struct wire_moment moment = {talk->session->statements, at_ns, at_ns};
            wire_session_deafen(talk->session, moment, "an answer that is not RESP");
            return;
        }
        reply_answer(talk, &reply, at_ns);
    }
}

/* --- databases and transactions --- */

void select_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    if (reply->type == '-') talk->database = request->database;
}

static void multi_hand(struct redis_talk *talk, const struct redis_request *request, enum wire_event_kind kind,
                       const char *reason) {
    char text[STATEMENT_ROOM];
    struct wire_event event = redis_event(talk, request, kind, text);
    event.in_transaction = true;
    event.reason = reason;
    wire_event_hand(talk->session, &event);
}

void multi_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    if (reply->type != '-') multi_hand(talk, request, TRANSACTION_BEGUN, "");
}

static void queue_clear(struct redis_talk *talk) {
    for (int each = 0; each < talk->queued_count; each++) request_free(talk->queued[each]);
    talk->queued_count = 0;
    talk->is_watching = false;
}

/* What was queued is not executed: locks that it asked for are refused. */
static void queued_fail(struct redis_talk *talk, const struct redis_request *end) {
    static const struct redis_value NOT_EXECUTED = {.type = '-', .text = {"the transaction was not executed", 32}};
    for (int each = 0; each < talk->queued_count; each++) {
        talk->queued[each]->moment.answered_ns = end->moment.answered_ns;
        redis_request_done(talk, talk->queued[each], &NOT_EXECUTED);
    }
}

void exec_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    struct span elements = reply->elements;
    if (reply->type != '*') {
        queued_fail(talk, request);
        if (reply->type == '_')
            multi_hand(talk, request, TRANSACTION_ROLLED_BACK, "a key that WATCH names has changed");
        else if (!span_is(reply->text, "ERR EXEC without MULTI"))
            multi_hand(talk, request, TRANSACTION_ROLLED_BACK, "a command of it was refused");
        queue_clear(talk);
        return;
    }
    for (int each = 0; each < talk->queued_count; each++) {
        struct redis_request *queued = talk->queued[each];
        struct redis_value value;
        if (!redis_value_take(&elements, &value)) break;
        queued->moment.asked_ns = request->moment.asked_ns; /* it is executed with EXEC */
        queued->moment.answered_ns = request->moment.answered_ns;
        redis_request_done(talk, queued, &value);
    }
    multi_hand(talk, request, TRANSACTION_COMMITTED, "");
    queue_clear(talk);
}

void discard_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    if (reply->type != '-') {
        queued_fail(talk, request);
        multi_hand(talk, request, TRANSACTION_ROLLED_BACK, "");
    }
    queue_clear(talk);
}

void watch_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    if (reply->type != '-') talk->is_watching = command_is(request, "watch");
}

void flush_done(struct redis_talk *talk, struct redis_request *request, const struct redis_value *reply) {
    if (reply->type != '-') redis_not_recognised(talk, request, "all keys are gone, and with them all locks");
}

/* --- the session --- */

struct redis_talk *redis_talk_begin(struct wire_session *session) {
    struct redis_talk *talk = calloc(1, sizeof *talk);
    if (!talk) abort();
    talk->session = session;
    return talk;
}

void redis_talk_end(struct redis_talk *talk, int64_t at_ns) {
    (void)at_ns; /* keys outlive their session */
    while (talk->request_count > 0) request_free(request_pop(talk));
    queue_clear(talk);
    free(talk->queued);
    free(talk->requests);
    free(talk);
}
