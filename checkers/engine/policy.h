/* A policy says how to read operations if the history does not say whether they happened. If it leaves that open,
 * the history is judged under every reading that it allows, and a verdict that differs between them is inconclusive.
 * Failed releases are read as happened, all of them, or as not happened; a checker that needs more says so
 * (`partial`). Decision 0032. */
#pragma once

#include "checkers/engine/judge.h"

enum release_policy { RELEASE_RELEASED, RELEASE_NOT_HAPPENED, RELEASE_UNKNOWN, RELEASE_POLICIES };
enum acquire_policy { ACQUIRE_NOT_HAPPENED, ACQUIRE_UNKNOWN, ACQUIRE_POLICIES };

struct policy {
    enum release_policy release;
    enum acquire_policy acquire;
};

/* As on the command line; both end with NULL. */
extern const char *const RELEASE_POLICY[];
extern const char *const ACQUIRE_POLICY[];

enum { READINGS = 4 };

/* The verdicts by reading, and the first judgement for what is the same in all. */
struct readings {
    struct verdict verdict[READINGS][CHECKERS_MOST];
    struct judgement first;
};

/* Judges under the readings that a policy allows. False: a record is damaged (first.damaged). The caller closes the
 * first judgement in either case. */
bool readings_judge(struct readings *readings, struct history_reader *reader, struct policy policy);

/* The verdict on a checker's property under a policy whose readings were all judged. */
void policy_verdict(const struct readings *readings, struct policy policy, int checker, struct verdict *verdict);
