/* What became of a command that a client sent in a schedule which is watched (search_world.h, watch). */
#pragma once

enum heard_fate {
    HEARD_ANSWERED,
    HEARD_ANSWER_LOST,   /* executed and answered; the answer does not reach the client */
    HEARD_WAITS,         /* executed; the answer comes later, or never: mostly of a blocking command */
    HEARD_ANSWERED_LATE, /* the answer to a blocking command */
    HEARD_LATE,          /* executed when nobody waits for its answer: a copy, or one that its client has given up */
    HEARD_LOST,          /* never executed: it was dropped, or its connection was */
    HEARD_REFUSED,       /* never executed: the server answers with an error */
    HEARD_FATES
};

/* As the JSON of a replay has it. */
static inline const char *heard_fate_name(enum heard_fate fate) {
    static const char *const NAMES[HEARD_FATES] = {
        [HEARD_ANSWERED] = "answered", [HEARD_ANSWER_LOST] = "answer-lost",
        [HEARD_WAITS] = "waits",       [HEARD_ANSWERED_LATE] = "answered-late",
        [HEARD_LATE] = "late",         [HEARD_LOST] = "lost",
        [HEARD_REFUSED] = "refused"};
    return NAMES[fate];
}
