#include "faults/proxy/ledger.h"

#include <stdlib.h>
#include <string.h>

/* Requests that are not answered by one reply, or after which other things come. */
enum request_kind {
    REQUEST_PLAIN,
    REQUEST_SUBSCRIBE,
    REQUEST_UNSUBSCRIBE,
    REQUEST_RESET,
    REQUEST_OPAQUE,
    REQUEST_CLIENT
};

static const struct special {
    const char *word;
    uint8_t kind, group;
} SPECIALS[] = {
    {"CLIENT", REQUEST_CLIENT, 0},
    {"MONITOR", REQUEST_OPAQUE, 0},
    {"PSUBSCRIBE", REQUEST_SUBSCRIBE, LEDGER_PATTERNS},
    {"PSYNC", REQUEST_OPAQUE, 0},
    {"PUNSUBSCRIBE", REQUEST_UNSUBSCRIBE, LEDGER_PATTERNS},
    {"RESET", REQUEST_RESET, 0},
    {"SSUBSCRIBE", REQUEST_SUBSCRIBE, LEDGER_SHARDS},
    {"SUBSCRIBE", REQUEST_SUBSCRIBE, LEDGER_CHANNELS},
    {"SUNSUBSCRIBE", REQUEST_UNSUBSCRIBE, LEDGER_SHARDS},
    {"SYNC", REQUEST_OPAQUE, 0},
    {"UNSUBSCRIBE", REQUEST_UNSUBSCRIBE, LEDGER_CHANNELS},
};
enum { SPECIAL_COUNT = sizeof SPECIALS / sizeof SPECIALS[0] };

static const struct special *special_find(const struct resp_word *word) {
    if (word->length < 4 || !memchr("CMPRSUcmprsu", word->bytes[0], 12)) return NULL;
    for (size_t each = 0; each < SPECIAL_COUNT; each++)
        if (resp_word_is(word, SPECIALS[each].word)) return &SPECIALS[each];
    return NULL;
}

void ledger_close(struct ledger *ledger) {
    *ledger->memory_bytes -= ledger->room * sizeof *ledger->marks;
    free(ledger->marks);
    ledger->marks = NULL;
    ledger->first = ledger->count = ledger->room = 0;
}

void ledger_mark(struct ledger *ledger, uint64_t request, enum mark_kind kind, int64_t number) {
    if (ledger->first + ledger->count == ledger->room && ledger->first) {
        memmove(ledger->marks, ledger->marks + ledger->first, ledger->count * sizeof *ledger->marks);
        ledger->first = 0;
    }
    if (ledger->count == ledger->room) {
        size_t room = ledger->room ? ledger->room * 2 : 8;
        ledger->marks = realloc(ledger->marks, room * sizeof *ledger->marks);
        if (!ledger->marks) abort();
        *ledger->memory_bytes += (room - ledger->room) * sizeof *ledger->marks;
        ledger->room = room;
    }
    ledger->marks[ledger->first + ledger->count++] =
        (struct mark){.request = request, .number = number, .kind = (uint8_t)kind};
    if (kind == MARK_SWALLOW) ledger->swallows++;
}

static void mark_confirms(struct ledger *ledger, const struct special *special, int64_t channels) {
    if (special->kind == REQUEST_SUBSCRIBE && channels == 0) return; /* an error is its only reply */
    ledger_mark(ledger, ledger->asked - 1, MARK_CONFIRMS, channels);
    ledger->marks[ledger->first + ledger->count - 1].group = special->group;
}

bool ledger_ask(struct ledger *ledger, const struct resp_scanner *request) {
    if (request->elements <= 0) return false;
    ledger->asked++;
    const struct special *special = special_find(&request->words[0]);
    if (!special) return true;
    bool replies_off = special->kind == REQUEST_CLIENT && resp_word_is(&request->words[1], "REPLY") &&
                       (resp_word_is(&request->words[2], "OFF") || resp_word_is(&request->words[2], "SKIP"));
    if (special->kind == REQUEST_OPAQUE || replies_off) {
        ledger_mark(ledger, ledger->asked - 1, MARK_OPAQUE, 0);
        ledger->opaque_asked = true;
    }
    if (special->kind == REQUEST_RESET) ledger_mark(ledger, ledger->asked - 1, MARK_RESET, 0);
    if (special->kind == REQUEST_SUBSCRIBE || special->kind == REQUEST_UNSUBSCRIBE)
        mark_confirms(ledger, special, request->elements - 1);
    return true;
}

static void reverse(struct mark *marks, size_t count) {
    for (size_t each = 0; each < count / 2; each++) {
        struct mark other = marks[each];
        marks[each] = marks[count - 1 - each];
        marks[count - 1 - each] = other;
    }
}

/* Turning round all of them and then each request's own moves one group behind the other. */
void ledger_swap(struct ledger *ledger) {
    if (ledger->count == 0) return;
    struct mark *marks = ledger->marks + ledger->first;
    uint64_t latest = ledger->asked - 1;
    size_t from = ledger->count, of_latest = 0;
    while (from && marks[from - 1].request + 1 >= latest) {
        from--;
        of_latest += marks[from].request == latest;
        marks[from].request = marks[from].request == latest ? latest - 1 : latest;
    }
    size_t count = ledger->count - from;
    if (count == 0) return;
    reverse(marks + from, count);
    reverse(marks + from, of_latest);
    reverse(marks + from + of_latest, count - of_latest);
}

bool ledger_is_opaque(const struct ledger *ledger) {
    if (ledger->count == 0) return false;
    const struct mark *mark = &ledger->marks[ledger->first];
    return mark->kind == MARK_OPAQUE && mark->request == ledger->answered;
}

static bool is_confirmation(const struct resp_scanner *reply) {
    if ((reply->type != '*' && reply->type != '>') || reply->elements != 3) return false;
    const struct special *special = special_find(&reply->words[0]);
    return special && (special->kind == REQUEST_SUBSCRIBE || special->kind == REQUEST_UNSUBSCRIBE);
}

static bool is_subscribed(const struct ledger *ledger) {
    int64_t sum = 0;
    for (int group = 0; group < LEDGER_GROUPS; group++) sum += ledger->subscriptions[group];
    return sum > 0;
}

static bool is_push(const struct ledger *ledger, const struct resp_scanner *reply) {
    if (reply->type == '>') return true;
    if (reply->type != '*' || !ledger->arrays_push || !is_subscribed(ledger)) return false;
    const struct resp_word *word = &reply->words[0];
    return resp_word_is(word, "message") || resp_word_is(word, "pmessage") || resp_word_is(word, "smessage") ||
           is_confirmation(reply); /* nobody asked: the server ended a subscription */
}

/* The third word says how many there are now, of shard channels or of all others together. */
static void confirm(struct ledger *ledger, const struct resp_scanner *reply) {
    const struct special *special = special_find(&reply->words[0]);
    const struct resp_word *word = &reply->words[2];
    int64_t now = 0, *of_group = &ledger->subscriptions[special->group];
    for (uint8_t each = 0; each < word->length && each < RESP_WORD; each++)
        if (word->bytes[each] >= '0' && word->bytes[each] <= '9' && now < INT32_MAX)
            now = now * 10 + (word->bytes[each] - '0');
    int64_t before = ledger->subscriptions[LEDGER_CHANNELS] + ledger->subscriptions[LEDGER_PATTERNS];
    if (special->group == LEDGER_SHARDS) before = *of_group;
    if (now > before) ++*of_group;
    if (now<before && * of_group> 0) --*of_group;
    ledger->arrays_push = reply->type == '*';
}

/* How many confirmations answer the request at the head of the ledger, NULL if it did not ask for any. */
static struct mark *confirms_awaited(const struct ledger *ledger, size_t count) {
    for (size_t each = 0; each < count; each++) {
        struct mark *mark = &ledger->marks[ledger->first + each];
        if (mark->kind != MARK_CONFIRMS) continue;
        int64_t all = ledger->subscriptions[mark->group];
        if (mark->number == 0) mark->number = all > 0 ? all : 1;
        return mark;
    }
    return NULL;
}

struct answer ledger_answer(struct ledger *ledger, const struct resp_scanner *reply) {
    struct answer answer = {.is_last = true};
    size_t count = 0;
    while (count < ledger->count && ledger->marks[ledger->first + count].request == ledger->answered) count++;
    bool confirmation = is_confirmation(reply);
    struct mark *confirms = confirmation && count ? confirms_awaited(ledger, count) : NULL;
    if (!confirms && is_push(ledger, reply)) {
        if (confirmation) confirm(ledger, reply);
        answer.push = true;
        return answer;
    }
    if (confirms) {
        confirm(ledger, reply);
        answer.is_last = --confirms->number == 0;
    }
    if (count) answer.marks = &ledger->marks[ledger->first];
    answer.count = count;
    for (size_t each = 0; each < count; each++) {
        if (answer.marks[each].kind == MARK_SWALLOW) answer.swallow = true;
        if (answer.marks[each].kind == MARK_RESET && reply->type == '+')
            memset(ledger->subscriptions, 0, sizeof ledger->subscriptions);
    }
    return answer;
}

void ledger_settle(struct ledger *ledger, const struct answer *answer) {
    if (answer->push || !answer->is_last) return;
    if (ledger->answered < ledger->asked) ledger->answered++; /* else nobody had asked: "too many clients" */
    ledger->swallows -= answer->swallow;
    ledger->first += answer->count;
    ledger->count -= answer->count;
    if (ledger->count == 0 && ledger->room) ledger_close(ledger);
}
