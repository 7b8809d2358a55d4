/* How operations are read of which nobody knows whether they happened, and the verdict under that. A policy that leaves
 * it open is judged under every reading that it allows: what is not the same in all of them is inconclusive. */
#ifndef LOCKSTORM_CHECKERS_POLICY_H
#define LOCKSTORM_CHECKERS_POLICY_H

#include "checkers/judge.h"

enum release_policy { RELEASE_RELEASED, RELEASE_NOT_HAPPENED, RELEASE_UNKNOWN, RELEASE_POLICIES };
enum acquire_policy { ACQUIRE_NOT_HAPPENED, ACQUIRE_UNKNOWN, ACQUIRE_POLICIES };

struct policy {
    enum release_policy release;
    enum acquire_policy acquire;
};

/* As on the command line. */
extern const char *const RELEASE_POLICY[RELEASE_POLICIES];
extern const char *const ACQUIRE_POLICY[ACQUIRE_POLICIES];

enum { READINGS = 4 };

/* The verdicts by reading, and the first judgement for what is the same in all. */
struct readings {
    struct judgement first;
    struct verdict verdict[READINGS][CHECKERS_MOST];
};

/* The readings that a policy needs, a bit each. */
unsigned policy_readings(struct policy policy);
/* Judges under these readings, one at least. False: a record is damaged (first.damaged). */
bool readings_judge(struct readings *readings, struct history_reader *reader, unsigned wanted);
void readings_close(struct readings *readings);

/* The verdict on a checker's property under a policy that was judged. */
void policy_verdict(const struct readings *readings, struct policy policy, int checker, struct verdict *verdict);

#endif
