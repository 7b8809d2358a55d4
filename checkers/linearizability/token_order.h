/* What the tokens of a fenced mutex say: in which order its firm acquires happened, until when each must have, and
 * which times without a holder have room for a grant of unknown token. linearizable_owner.c has the argument. */
#pragma once

#include "checkers/linearizability/linearizable.h"

/* A time without a holder that is over, and how many grants of unknown tokens fit into it. */
struct token_gap {
    uint32_t end; /* position */
    uint64_t room;
};

/* The firm acquires of the prefix in the order of tokens. */
struct token_order {
    uint32_t *grants, *deadlines; /* until when each must be done: before a larger token, or a renewal with one */
    uint32_t count, all;          /* in this prefix; in the whole history, whose order stands behind it in `grants` */
    uint32_t due;                 /* the first whose deadline has not come */
};

/* How far a configuration has come in that order. */
struct token_place {
    uint32_t next;  /* the first acquire that has not happened */
    int64_t newest; /* token; of the unknown ones that were taken since the last known one, as small as can be */
    int64_t known; /* the largest token that a grant or a renewal has stated; below `newest` or a renewal of the hold */
    struct token_gap *gaps;
    size_t gap_count, gap_room;
};

/* The order in the whole history. False: a limit is reached. The caller frees it in any case. */
bool token_order_make(struct token_order *order, const struct timeline *timeline, struct limits *limits);
void token_order_free(struct token_order *order, struct limits *limits);
void token_place_free(struct token_place *place, struct limits *limits);

/* The firm acquires of the timeline's prefix. False: one was called too late, which `result` says. */
bool token_order_begin(struct token_order *order, const struct timeline *timeline, struct linearizable_result *result);

/* A time without a holder is over, with room for unknown tokens. Past the limit it is not kept. */
void token_place_add_gap(struct token_place *place, uint32_t end, uint64_t room, struct limits *limits);
/* Takes a token in the oldest gap that lasted beyond `start`. False if no gap has one. */
bool token_place_take_gap(struct token_place *place, uint32_t start);
/* Has `one` as much room for unknown tokens as `other`, wherever that has some? */
bool token_place_is_as_good(const struct token_place *one, const struct token_place *other);
