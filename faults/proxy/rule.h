/* A rule: what happens to which messages on which links. This file parses a rule, matches it and counts; disposition.c
 * carries its action out.
 *
 * Match options look at the first MESSAGE_HEAD bytes of a message: an argument that does not end within them cannot
 * match.
 *
 *   NAME PATTERN to-server|to-client|both ACTION [options]
 *
 * Actions: delay MS [JITTER MS], rate BYTES_PER_S, hold, drop, duplicate, reorder, truncate BYTES, reset, half-close,
 * black-hole. Options: COMMAND name, KEY bytes, ARG bytes, PUSH, REPLY, NTH n, COUNT n, SEED n. */
#pragma once

#include "faults/proxy/reply_matcher.h"
#include "harness/history/history.h"
#include "harness/scheduler/random.h"

enum { MESSAGE_HEAD = 64 << 10 };

enum direction { TO_SERVER = 0, TO_CLIENT = 1, DIRECTIONS = 2 };

enum rule_action {
    RULE_DELAY, /* amount: ms */
    RULE_RATE,  /* amount: bytes per second */
    RULE_HOLD,  /* until RULE RELEASE or RULE REMOVE */
    RULE_DROP,
    RULE_DUPLICATE,
    RULE_REORDER,    /* the message goes after the next one */
    RULE_TRUNCATE,   /* amount: bytes of the message that are delivered before both sides are closed */
    RULE_RESET,      /* both sides are closed instead of delivering the message */
    RULE_HALF_CLOSE, /* the stream ends after the message */
    RULE_BLACK_HOLE, /* the message and all that comes after it is swallowed */
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
    struct span key, argument;  /* no bytes: any */
    bool push, reply;
    int64_t nth, count; /* count 0: no limit */
    bool has_seed;
    uint64_t seed;

    bool has_match;  /* it looks at the content of messages: bytes without messages do not concern it */
    bool is_blanket; /* it swallows a whole direction, without looking at messages */

    bool chosen; /* slows the message that is being decided on */
    struct {
        const struct flow *flow; /* NULL: none yet */
        int64_t mono_ns;
        bool applies, goes_on; /* goes_on: more bytes came at that time */
    } raw;                     /* the last bytes that are no message: where, when, and what was decided */
    uint64_t fired, matched, released, swallowed_bytes;
    size_t held;
    struct chunk *held_first, *held_last; /* in the order in which they were held */
};

/* What a rule is matched with. */
struct message {
    const struct resp_scanner *scanner;
    struct span head;
    const struct matched_reply *matched; /* NULL: it is a request */
};

/* Makes a rule of the arguments of RULE ADD; NULL with a sentence in *error. The caller frees it with rule_free. */
struct rule *rule_parse(const struct span *arguments, size_t count, struct history_error *error);
void rule_free(struct rule *rule);
/* Parses a decimal number of at least `least`; false when the word is anything else. */
bool rule_number(struct span word, int64_t least, int64_t *number);

/* Whether the rule is active on this link and direction. */
bool rule_concerns(const struct rule *rule, const char *link, enum direction direction);
/* Whether the rule concerns a message. For a request and a rule that waits for replies: whether it concerns the reply.
 * A reply is concerned by the mark that its request has in the reply matcher. */
bool rule_matches(const struct rule *rule, const struct message *message);
/* Counts a match; returns whether the rule fires at it (NTH, COUNT). */
bool rule_count_match(struct rule *rule);
