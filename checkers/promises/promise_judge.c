#include "checkers/promises/promises.h"

#include "checkers/promises/promise_rule.h"

int promises_judge(const struct library_facts *facts, const struct call_event *events, size_t count,
                   struct broken_promise *found, int most) {
    struct promise_course course;
    bool opened = count < UINT32_MAX && course_open(&course, facts, events, count);
    if (count >= UINT32_MAX) return -1;
    if (opened) {
        course.found = found;
        course.most = most;
        for (course.now = 0; course.now < count; course.now++) {
            course_take(&course);
            enum call_event_kind kind = events[course.now].kind;
            for (const struct promise_rule *const *rule = PROMISE_TABLE; *rule && kind < EVENT_KINDS; rule++)
                if ((*rule)->on[kind]) (*rule)->on[kind](&course);
        }
    }
    int broken = opened ? course.found_count : -1;
    course_close(&course);
    return broken;
}

const char *promise_name(enum promise promise) {
    static const char *const NAMES[PROMISES] = {
        [PROMISE_EXCLUSION] = "exclusion",
        [PROMISE_OWNERSHIP] = "ownership",
        [PROMISE_LEASE_SHORT] = "lease-too-short",
        [PROMISE_LEASE_LONG] = "lease-too-long",
        [PROMISE_LEASE_ENDLESS] = "lease-endless",
        [PROMISE_RENEWAL] = "renewal",
        [PROMISE_VALIDITY] = "validity",
        [PROMISE_WAIT] = "wait",
        [PROMISE_TOKEN] = "token",
        [PROMISE_REFUSAL] = "refusal",
        [PROMISE_CANCEL] = "cancel",
        [PROMISE_LIVENESS] = "liveness",
        [PROMISE_RESIDUE] = "residue",
        [PROMISE_ANSWER] = "answer",
    };
    return promise < PROMISES ? NAMES[promise] : NULL;
}
