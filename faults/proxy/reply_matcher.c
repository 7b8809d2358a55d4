#include "faults/proxy/reply_matcher.h"

#include <stdlib.h>
#include <string.h>

/* What is special about a request: it is not answered by exactly one reply, or it changes what comes after it. */
enum request_kind {
    REQUEST_PLAIN,
    REQUEST_SUBSCRIBE,
    REQUEST_UNSUBSCRIBE,
    REQUEST_RESET,
    REQUEST_OPAQUE,
    REQUEST_CLIENT
};

static const struct special_command {
    const char *word;
    uint8_t kind, group;
} SPECIALS[] = {
    {"CLIENT", REQUEST_CLIENT, 0},
    {"MONITOR", REQUEST_OPAQUE, 0},
    {"PSUBSCRIBE", REQUEST_SUBSCRIBE, REPLY_MATCHER_PATTERNS},
    {"PSYNC", REQUEST_OPAQUE, 0},
    {"PUNSUBSCRIBE", REQUEST_UNSUBSCRIBE, REPLY_MATCHER_PATTERNS},
    {"RESET", REQUEST_RESET, 0},
    {"SSUBSCRIBE", REQUEST_SUBSCRIBE, REPLY_MATCHER_SHARDS},
    {"SUBSCRIBE", REQUEST_SUBSCRIBE, REPLY_MATCHER_CHANNELS},
    {"SUNSUBSCRIBE", REQUEST_UNSUBSCRIBE, REPLY_MATCHER_SHARDS},
    {"SYNC", REQUEST_OPAQUE, 0},
    {"UNSUBSCRIBE", REQUEST_UNSUBSCRIBE, REPLY_MATCHER_CHANNELS},
};
enum { SPECIAL_COUNT = sizeof SPECIALS / sizeof SPECIALS[0] };

static const struct special_command *special_find(const struct resp_word *word) {
    if (word->length < 4 || !memchr("CMPRSUcmprsu", word->bytes[0], 12)) return NULL;
    for (size_t each = 0; each < SPECIAL_COUNT; each++)
        if (resp_word_is(word, SPECIALS[each].word)) return &SPECIALS[each];
    return NULL;
}

void reply_matcher_close(struct reply_matcher *matcher) {
    *matcher->memory_bytes -= matcher->capacity * sizeof *matcher->marks;
    free(matcher->marks);
    matcher->marks = NULL;
    matcher->first = matcher->count = matcher->capacity = 0;
}

void reply_matcher_mark(struct reply_matcher *matcher, uint64_t request, enum mark_kind kind, int64_t number) {
    if (matcher->first + matcher->count == matcher->capacity && matcher->first) {
        memmove(matcher->marks, matcher->marks + matcher->first, matcher->count * sizeof *matcher->marks);
        matcher->first = 0;
    }
    if (matcher->count == matcher->capacity) {
        size_t capacity = matcher->capacity ? matcher->capacity * 2 : 8;
        matcher->marks = realloc(matcher->marks, capacity * sizeof *matcher->marks);
        if (!matcher->marks) abort();
        *matcher->memory_bytes += (capacity - matcher->capacity) * sizeof *matcher->marks;
        matcher->capacity = capacity;
    }
    matcher->marks[matcher->first + matcher->count++] =
        (struct mark){.request = request, .number = number, .kind = (uint8_t)kind};
    if (kind == MARK_SWALLOW) matcher->swallows++;
}

static void mark_confirms(struct reply_matcher *matcher, const struct special_command *special, int64_t channels) {
    if (special->kind == REQUEST_SUBSCRIBE && channels == 0) return; /* an error is its only reply */
    reply_matcher_mark(matcher, matcher->requested - 1, MARK_CONFIRMS, channels);
    matcher->marks[matcher->first + matcher->count - 1].group = special->group;
}

bool reply_matcher_add_request(struct reply_matcher *matcher, const struct resp_scanner *request) {
    if (request->elements <= 0) return false;
    matcher->requested++;
    const struct special_command *special = special_find(&request->words[0]);
    if (!special) return true;
    bool replies_off = special->kind == REQUEST_CLIENT && resp_word_is(&request->words[1], "REPLY") &&
                       (resp_word_is(&request->words[2], "OFF") || resp_word_is(&request->words[2], "SKIP"));
    if (special->kind == REQUEST_OPAQUE || replies_off) {
        reply_matcher_mark(matcher, matcher->requested - 1, MARK_OPAQUE, 0);
        matcher->opaque_requested = true;
    }
    if (special->kind == REQUEST_RESET) reply_matcher_mark(matcher, matcher->requested - 1, MARK_RESET, 0);
    if (special->kind == REQUEST_SUBSCRIBE || special->kind == REQUEST_UNSUBSCRIBE)
        mark_confirms(matcher, special, request->elements - 1);
    return true;
}

static void reverse(struct mark *marks, size_t count) {
    for (size_t each = 0; each < count / 2; each++) {
        struct mark other = marks[each];
        marks[each] = marks[count - 1 - each];
        marks[count - 1 - each] = other;
    }
}

/* Reversing all marks of both requests and then each request's own moves one group behind the other. */
void reply_matcher_swap(struct reply_matcher *matcher) {
    if (matcher->count == 0) return;
    struct mark *marks = matcher->marks + matcher->first;
    uint64_t latest = matcher->requested - 1;
    size_t from = matcher->count, of_latest = 0;
    while (from && marks[from - 1].request + 1 >= latest) {
        from--;
        of_latest += marks[from].request == latest;
        marks[from].request = marks[from].request == latest ? latest - 1 : latest;
    }
    size_t count = matcher->count - from;
    if (count == 0) return;
    reverse(marks + from, count);
    reverse(marks + from, of_latest);
    reverse(marks + from + of_latest, count - of_latest);
}

bool reply_matcher_is_opaque(const struct reply_matcher *matcher) {
    if (matcher->count == 0) return false;
    const struct mark *mark = &matcher->marks[matcher->first];
    return mark->kind == MARK_OPAQUE && mark->request == matcher->answered;
}

static bool is_confirmation(const struct resp_scanner *reply) {
    if ((reply->type != '*' && reply->type != '>') || reply->elements != 3) return false;
    const struct special_command *special = special_find(&reply->words[0]);
    return special && (special->kind == REQUEST_SUBSCRIBE || special->kind == REQUEST_UNSUBSCRIBE);
}

static bool is_subscribed(const struct reply_matcher *matcher) {
    int64_t sum = 0;
    for (int group = 0; group < REPLY_MATCHER_GROUPS; group++) sum += matcher->subscriptions[group];
    return sum > 0;
}

static bool is_push(const struct reply_matcher *matcher, const struct resp_scanner *reply) {
    if (reply->type == '>') return true;
    if (reply->type != '*' || !matcher->pushes_are_arrays || !is_subscribed(matcher)) return false;
    const struct resp_word *word = &reply->words[0];
    return resp_word_is(word, "message") || resp_word_is(word, "pmessage") || resp_word_is(word, "smessage") ||
           is_confirmation(reply); /* unrequested: the server ended a subscription */
}

/* A confirmation's third word is the number of subscriptions now: to shard channels, or to all others together. */
static void confirm(struct reply_matcher *matcher, const struct resp_scanner *reply) {
    const struct special_command *special = special_find(&reply->words[0]);
    const struct resp_word *word = &reply->words[2];
    int64_t now = 0, *of_group = &matcher->subscriptions[special->group];
    for (uint8_t each = 0; each < word->length && each < RESP_WORD; each++)
        if (word->bytes[each] >= '0' && word->bytes[each] <= '9' && now < INT32_MAX)
            now = now * 10 + (word->bytes[each] - '0');
    int64_t before = matcher->subscriptions[REPLY_MATCHER_CHANNELS] + matcher->subscriptions[REPLY_MATCHER_PATTERNS];
    if (special->group == REPLY_MATCHER_SHARDS) before = *of_group;
    if (now > before) ++*of_group;
    else if (now < before && *of_group != 0) --*of_group;
    matcher->pushes_are_arrays = reply->type == '*';
}

/* The mark that counts the confirmations still to come for the oldest unanswered request; NULL: it has none. */
static struct mark *confirms_awaited(const struct reply_matcher *matcher, size_t count) {
    for (size_t each = 0; each < count; each++) {
        struct mark *mark = &matcher->marks[matcher->first + each];
        if (mark->kind != MARK_CONFIRMS) continue;
        int64_t all = matcher->subscriptions[mark->group];
        if (mark->number == 0) mark->number = all > 0 ? all : 1;
        return mark;
    }
    return NULL;
}

struct matched_reply reply_matcher_match_reply(struct reply_matcher *matcher, const struct resp_scanner *reply) {
    struct matched_reply matched = {.is_last = true};
    size_t count = 0;
    while (count < matcher->count && matcher->marks[matcher->first + count].request == matcher->answered) count++;
    bool confirmation = is_confirmation(reply);
    struct mark *confirms = confirmation && count ? confirms_awaited(matcher, count) : NULL;
    if (!confirms && is_push(matcher, reply)) {
        if (confirmation) confirm(matcher, reply);
        matched.push = true;
        return matched;
    }
    if (confirms) {
        confirm(matcher, reply);
        matched.is_last = --confirms->number == 0;
    }
    if (count) matched.marks = &matcher->marks[matcher->first];
    matched.count = count;
    for (size_t each = 0; each < count; each++) {
        if (matched.marks[each].kind == MARK_SWALLOW) matched.swallow = true;
        if (matched.marks[each].kind == MARK_RESET && reply->type == '+')
            memset(matcher->subscriptions, 0, sizeof matcher->subscriptions);
    }
    return matched;
}

void reply_matcher_finish_reply(struct reply_matcher *matcher, const struct matched_reply *matched) {
    if (matched->push || !matched->is_last) return;
    if (matcher->answered < matcher->requested) matcher->answered++; /* else unrequested: "too many clients" */
    matcher->swallows -= matched->swallow;
    matcher->first += matched->count;
    matcher->count -= matched->count;
    if (matcher->count == 0 && matcher->capacity) reply_matcher_close(matcher);
}
