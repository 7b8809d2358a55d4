/* A checker answers one question about a history. It streams: it sees one record at a time, in index order, and its
 * memory grows with clients and locks, not with records. Each checker is one C file with a struct checker
 * (checkers/properties/README.md says how to add one), and knows only the history: no server, no lock code.
 *
 * judge.c keeps what several checkers need: who a record is about (struct check_lock, check_actor, and check_member:
 * one client's side of one lock), what `lock-open` recorded, and how failed operations are read. A checker's state
 * lives inside the object that it is about: the checker asks for a number of bytes in every lock, actor and member, and
 * my_lock, my_actor and my_member find them, zeroed at first. It is called only for the kinds of record that it names.
 *
 * docs/verdicts.md has the definitions (closed or open ends, which stamps). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/history/history.h"

/* Zero is inconclusive: what was not decided is never taken for a pass. */
enum verdict_status { VERDICT_INCONCLUSIVE = 0, VERDICT_HOLDS = 1, VERDICT_VIOLATED = 2 };

/* What the exit status of `check` and `linearize` says. */
enum { EXIT_HOLDS = 0, EXIT_VIOLATED = 1, EXIT_BAD = 2, EXIT_INCONCLUSIVE = 3 };

static inline const char *verdict_status_name(enum verdict_status status) {
    return status == VERDICT_HOLDS ? "holds" : status == VERDICT_VIOLATED ? "violated" : "inconclusive";
}

enum { EVIDENCE_RECORDS = 4, EVIDENCE_KEPT = 8, VERDICT_PARTS = 7, VERDICT_MEASURES = 6, CHECKERS_MOST = 16 };

/* One cause: violations of one sort by the same client against the same other one. */
struct evidence {
    unsigned sort;
    uint64_t who, whom;
    uint64_t count;
    uint64_t records[EVIDENCE_RECORDS]; /* indices, the smallest set that shows the first of them */
    int record_count;
    char text[400];
};

/* A number that the verdict reports and does not judge: "longest_wait_ms". */
struct verdict_measure {
    const char *name;
    double value;
};

struct verdict {
    enum verdict_status status;
    bool applies;     /* the question arises (fencing: there are tokens); advisory checkers leave it */
    bool partial;     /* some failed releases may have happened and others not, and that might be another verdict */
    uint64_t count;   /* violations */
    uint64_t stopped; /* accesses that the store refused instead */
    uint64_t sorts[VERDICT_PARTS]; /* the violations by sort */
    struct verdict_measure measures[VERDICT_MEASURES];
    char reason[160];                        /* inconclusive: why */
    struct evidence evidence[EVIDENCE_KEPT]; /* of the first causes */
    int evidence_count;
};

/* How to read an operation that was refused, or whose outcome its client does not know. */
struct check_reading {
    bool releases_failed; /* false: a release that did not come back ok has happened; true: it has not */
    bool acquires_happen; /* false: an acquire of unknown outcome has not happened; true: it has */
};

/* A lock, as its latest LOCK_OPEN describes it. */
struct check_lock {
    uint32_t name;
    uint32_t traits;
    int64_t capacity;           /* permits; 1 until a LOCK_OPEN says otherwise */
    int64_t lease_ns;           /* 0: none */
    struct check_actor *holder; /* the client of its latest grant; NULL: none */
    uint64_t released;          /* the latest release-invoke of a client that was the holder; 0: none */
    int64_t released_ns;        /* its stamp */
    uint64_t lapsed;            /* the latest such release that was followed by no grant for a lease; 0: none */
    struct check_member *members;
    struct check_lock *next;
};

/* A process that records: a client, or the store. */
struct check_actor {
    uint32_t name;
    bool gone;                             /* its process has ended, and it has done nothing since */
    uint64_t begun;                        /* index of its latest invocation, 0: none */
    uint8_t outstanding;                   /* kind of the invocation that has not come back, 0: none */
    uint32_t op;                           /* number of that, or of what came back last */
    int64_t mono_ns;                       /* its latest stamp */
    struct check_member *members, *latest; /* latest: the one that it used last */
    struct check_actor *next;
};

/* One client's side of one lock. */
struct check_member {
    struct check_lock *lock;
    struct check_actor *actor;
    uint64_t grant;          /* index of its latest grant, 0: none */
    uint64_t failed_release; /* index of its latest release-invoke, when the reading says that it never happened */
    struct check_member *next_of_lock, *next_of_actor;
};

/* A record, and who it is about (NULL: nobody). lock and member are those of a record about a lock. actor is the client
 * that recorded it; for a record of the store, the client that it served; for ACTOR_EXIT, the one that is gone, whose
 * member is each of its own in turn for a checker that has state in members. The lock of a record of the store is that
 * of the grant which it names, and the member is the client's side of it; NULL where it names none, or no grant before
 * it. */
struct event {
    const struct history_record *record;
    uint64_t index;
    struct check_lock *lock;
    struct check_actor *actor;
    struct check_member *member;
    uint64_t asked; /* of a return: index of its invocation; 0: the history has none */
    bool failed;    /* a RELEASE_INVOKE or RELEASE_RETURN that by this reading never happened */
};

struct check {
    struct history_reader *reader;
    struct check_reading reading;
    struct check_lock *locks; /* in the order in which they appear */
    struct check_actor *actors;
    uint64_t seen[UINT8_MAX + 1];         /* records by kind */
    uint64_t granted, refused, timed_out; /* answers to acquires */
    uint32_t traits;                      /* of all locks that were opened */
    int64_t capacity;                     /* the largest of them */
    /* Writes of the rightful holder that the store refused for their token: they were not late. The checker of fencing
     * tokens counts them; the number is final when all records have been read. */
    uint64_t refused_wrongfully;
    int64_t began_ns; /* stamp of the first record */
    int64_t now_ns;   /* the latest stamp of all */
    uint64_t quiet;   /* index of the phase record from which on liveness is judged, 0: none */
    int64_t quiet_ns;
    int64_t bound_ns; /* the parameter bound_ms: how long a free lock may go unnoticed; -1: not given */
    int64_t order_ns; /* the parameter order_ms: requests further apart arrive in their order; -1: not given */
};

/* A checker at work. */
struct checking {
    const struct checker *checker;
    struct check *check;
    void *state;
    size_t lock_at, actor_at, member_at;
    struct verdict verdict;
};

typedef void check_record(struct checking *my, const struct event *event);

struct checker {
    const char *property;                 /* "mutual_exclusion" */
    const char *sorts[VERDICT_PARTS + 1]; /* of violations, in the singular; empty: there is one sort; ends with NULL */
    bool advisory;                        /* decides the exit status only if --require names it */
    size_t state_size, lock_size, actor_size, member_size;
    check_record *on[HISTORY_KIND_COUNT];
    void (*finish)(struct checking *my); /* fills my->verdict, frees what the checker allocated itself */
};

/* All checkers in the order in which a verdict states them; ends with NULL. */
extern const struct checker *const CHECKER_TABLE[];

/* The bits of HISTORY_LOCK_OPEN that checkers use; the same numbers as in harness/locks/common/lock.h. */
enum {
    CHECK_TRAIT_LEASE = 1,
    CHECK_TRAIT_TOKEN = 2,
    CHECK_TRAIT_REENTRANT = 4,
    CHECK_TRAIT_FAIR = 8,
    CHECK_TRAIT_RENEWS = 16
};

/* Servers count leases in whole milliseconds: one may end that much before the lease is over. */
enum { CHECK_NS_PER_MS = 1000000, CHECK_LEASE_GRAIN_NS = 2 * CHECK_NS_PER_MS };

/* Does a client that holds the lock take another permit when it is granted it again? */
static inline bool has_permits_to_count(const struct check_lock *lock) {
    return lock->capacity > 1 && !(lock->traits & CHECK_TRAIT_REENTRANT);
}

static inline void *my_lock(const struct checking *my, struct check_lock *lock) {
    return (char *)lock + my->lock_at;
}

static inline void *my_actor(const struct checking *my, struct check_actor *actor) {
    return (char *)actor + my->actor_at;
}

static inline void *my_member(const struct checking *my, struct check_member *member) {
    return (char *)member + my->member_at;
}

/* For functions that run only when a violation is found: keeps them out of the code that runs for every record. */
#define SELDOM __attribute__((cold, noinline))

static inline int64_t smaller(int64_t one, int64_t other) {
    return one < other ? one : other;
}

static inline int64_t larger(int64_t one, int64_t other) {
    return one > other ? one : other;
}

/* The stamp before which a grant was not given: that of its attempt (`extra`), or of its invocation (`asked`; 0:
 * unknown). A release that was invoked meanwhile may have handed the lock over: the latest one, for an earlier one was
 * followed by another grant. Unless a lease had passed before that; and with several permits any of them may have. */
static inline int64_t check_given_ns(const struct event *grant, uint64_t asked, int64_t asked_ns) {
    const struct history_record *record = grant->record;
    const struct check_lock *lock = grant->lock;
    int64_t from_ns = record->extra ? record->extra : asked ? asked_ns : record->mono_ns;
    if (!asked || lock->released <= asked) return from_ns;
    return smaller(from_ns, lock->capacity > 1 || lock->lapsed > asked ? asked_ns : lock->released_ns);
}

/* From one stamp to another, saturated: stamps of a hostile history may lie further apart than 64 bits can say. */
static inline int64_t elapsed_ns(int64_t from_ns, int64_t to_ns) {
    int64_t elapsed;
    if (__builtin_sub_overflow(to_ns, from_ns, &elapsed)) return to_ns > from_ns ? INT64_MAX : INT64_MIN;
    return elapsed;
}

/* Until when the client of a VALIDITY record may believe; 0: until its release. A validity that is refused says that
 * the grant is lost: it has ended before every stamp, whatever its value. */
static inline int64_t validity_until_ns(const struct history_record *validity) {
    return validity->outcome == OUTCOME_REFUSED ? INT64_MIN : validity->value;
}

/* What is violated, by whom against whom, how often at once (0 means 1), and the earlier records that show it. */
struct violation {
    unsigned sort; /* of the checker's sorts */
    uint64_t who, whom, times;
    uint64_t records[EVIDENCE_RECORDS]; /* indices; 0: none */
};
/* Counts a violation that the event shows, as the last of the records; NULL: the end of the history does. If it is the
 * first of its cause and there is room, keeps it as evidence with a text: %s, %lld and, each with a pointer, %pN a name
 * by its index (uint32_t), %pT a stamp as "at 30.205 s" (int64_t), %pD a duration (int64_t), %pG a grant by its index
 * (uint64_t) as "client-1 (token 33, granted at 0.205 s)"; NULL shows nothing. */
SELDOM void violate(struct checking *my, const struct event *event, const struct violation *violation,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Sets the status: violated if a violation was counted; else it holds if `seen`, or is inconclusive for `reason`. */
void verdict_decide(struct verdict *verdict, bool seen, const char *reason);

/* The record at an index, all zero if it does not exist. */
struct history_record check_record_at(const struct check *check, uint64_t index);

/* As %pG of violate; returns the buffer. */
const char *check_grant(const struct check *check, uint64_t index, char *buffer, size_t size);

/* A growing array of `size`-byte entries that each begin with a uint32_t key. */
struct check_table {
    void *entries;
    size_t size, count, room;
};
/* Adds an entry, zeroed but for its key; several entries may have the same. Valid until the next one is added. */
void *check_table_add(struct check_table *table, uint32_t key);
