/* What the tokens of a fenced mutex say: in which order its firm acquires happened, until when each must have, and
 * which times without a holder have room for a grant of unknown token. linearizable_owner.c has the argument. */
#ifndef LOCKSTORM_CHECKERS_TOKEN_ORDER_H
#define LOCKSTORM_CHECKERS_TOKEN_ORDER_H

#include "checkers/linearizability/linearizable.h"

/* A time without a holder that is over, and how many grants of unknown tokens fit into it. */
struct token_gap {
    uint32_t end; /* position */
    uint64_t room;
};

/* The firm acquires of the prefix in the order of tokens, and what the one configuration has made of them. */
struct token_order {
    uint32_t *grants, *deadlines; /* until when each must be done */
    uint32_t count, all;          /* in this prefix; in the whole history, whose order stands behind it in `grants` */
    uint32_t due;                 /* the first whose deadline has not come */
    uint32_t next;                /* the first that has not happened */
    int64_t newest;               /* token */
    struct token_gap *gaps;
    size_t gap_count, gap_room;
};

/* The order in the whole history. False: a limit is reached. The caller frees it in any case. */
bool token_order_make(struct token_order *order, const struct timeline *timeline, struct limits *limits);
void token_order_free(struct token_order *order, struct limits *limits);

/* The firm acquires of the timeline's prefix. False: one was called too late, which `result` says. */
bool token_order_begin(struct token_order *order, const struct timeline *timeline, struct linearizable_result *result);

/* Takes a token in the oldest gap that lasted beyond `start`. False: there is none. */
bool token_order_take_gap(struct token_order *order, uint32_t start);

#endif
