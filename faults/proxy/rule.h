/* A rule: what happens to which messages on which links. This file knows what a rule says and counts; what its actions
 * do stands in fate.c.
 *
 * Match options look at the first MESSAGE_HEAD bytes of a message: an argument that does not end within them cannot
 * match.
 *
 *   NAME PATTERN to-server|to-client|both ACTION [options]
 *   actions   delay MS [JITTER MS], rate BYTES_PER_S, hold, drop, duplicate, reorder, truncate BYTES, reset,
 * half-close, black-hole options   COMMAND name, KEY bytes, ARG bytes, PUSH, REPLY, NTH n, COUNT n, SEED n */
#ifndef LOCKSTORM_RULE_H
#define LOCKSTORM_RULE_H

#include "faults/proxy/ledger.h"
#include "harness/random.h"

enum { MESSAGE_HEAD = 64 << 10 };

enum direction { TO_SERVER = 0, TO_CLIENT = 1, DIRECTIONS = 2 };

enum rule_action {
    RULE_DELAY, /* amount: ms */
    RULE_RATE,  /* amount: bytes per second */
    RULE_HOLD,  /* until RULE RELEASE or RULE REMOVE */
    RULE_DROP,
    RULE_DUPLICATE,
    RULE_REORDER,    /* goes after the next message */
    RULE_TRUNCATE,   /* amount: bytes of it that are delivered before both sides are closed */
    RULE_RESET,      /* both sides are closed instead of delivering it */
    RULE_HALF_CLOSE, /* nothing comes after it */
    RULE_BLACK_HOLE, /* it and all that comes after it is swallowed */
    RULE_ACTIONS
};

struct chunk;

struct rule {
    struct rule *next; /* in the order in which they were added */
    char *name, *pattern;
    uint32_t id, text; /* text: index of the name in the history */
    bool active;
    bool directions[DIRECTIONS];
    enum rule_action action;
    int64_t amount, jitter_ms;
    struct random random;

    char *command, *subcommand; /* NULL: any */
    bool has_key, has_argument;
    struct span key, argument;
    bool push, reply;
    int64_t nth, count; /* count 0: no limit */
    bool has_seed;
    uint64_t seed;

    bool has_match;  /* it looks at what a message says */
    bool is_blanket; /* it swallows a direction as a whole, without looking at messages */

    bool chosen; /* for the message that is being looked at */
    uint64_t fired, matched, released, swallowed_bytes;
    size_t held;
    struct chunk *held_first, *held_last; /* in the order in which they were held */
};

/* What a rule looks at. */
struct message {
    const struct resp_scanner *scanner;
    struct span head;
    const struct answer *answer; /* NULL: it is a request */
};

struct rule_error {
    char text[256];
};

/* Makes a rule of the words after RULE ADD; NULL with a sentence in *error. Freed by rule_free. */
struct rule *rule_parse(const struct span *words, size_t count, struct rule_error *error);
void rule_free(struct rule *rule);
/* A number of at least `least` that fills all of the word. */
bool rule_number(struct span word, int64_t least, int64_t *number);
bool rule_word_is(struct span word, const char *text); /* in any case */

bool rule_concerns(const struct rule *rule, const char *link, enum direction direction);
/* A request: whether it is concerned, or (of a rule that waits for replies) whether its reply is.
 * From the server: a reply is concerned by a mark in the ledger. */
bool rule_matches(const struct rule *rule, const struct message *message);
/* Bytes that are no message: only what concerns everything concerns them. */
bool rule_matches_raw(const struct rule *rule);
/* Counts a match; returns whether the rule is to fire at it. */
bool rule_count_match(struct rule *rule);

#endif
