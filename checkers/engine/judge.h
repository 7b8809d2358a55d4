/* Judging one history under one reading: every record is read once, compared with the assumptions, and handed to
 * the checkers that asked for its kind. */
#pragma once

#include "checkers/engine/assumptions.h"
#include "checkers/engine/checker.h"
#include "checkers/engine/participants.h"

struct judgement {
    struct check check;
    struct checking at_work[CHECKERS_MOST];
    int checkers;
    struct assumptions assumptions;
    struct participants participants;
    struct check_table parameters; /* struct recorded_parameter, in order: the last of a name counts */
    char inapplicable_reason[200]; /* why nothing can be said to hold; empty: nothing is in the way */
    uint64_t damaged;              /* index of the record at which judging ended with false */
    uint64_t failed_releases;
};

struct recorded_parameter {
    uint32_t name; /* key */
    bool is_text;
    int64_t value;
};

/* Judges the whole history, from its first record. False: a record is damaged. The caller closes in either case. */
bool judge(struct judgement *judgement, struct history_reader *reader, struct check_reading reading);
void judge_close(struct judgement *judgement);
