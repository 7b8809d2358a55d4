/* The operations of a lock or register, whatever recorded them: the input of a linearizability check.
 *
 * A reader hands over one event after the other in the order of the input; the k-th event of an object is at position
 * 2k + 1 of its time. An operation spans from the position of its call to that of its return, OPERATION_OPEN if it
 * never came back: then it may happen at any later time, or never, as one may that came back with an unknown outcome.
 * Policies resolve ambiguous outcomes while the list is made, so that judging knows only three outcomes. Objects are
 * kept apart: a history is linearizable if and only if it is for each object (Herlihy and Wing 1990, theorem 1). */
#pragma once

#include "checkers/linearizability/limits.h"
#include "harness/history/outcome.h"

enum operation_kind {
    OPERATION_ACQUIRE,
    OPERATION_RELEASE,
    OPERATION_RENEW, /* happened only if it was answered ok, by a model in which holds are owned */
    OPERATION_LOSS,  /* a refused renewal or release that says so: if its process held the lock, that is over now */
    OPERATION_READ,
    OPERATION_WRITE,
    OPERATION_CAS,
    OPERATION_ADD, /* `value`, to whatever number is there; no format has it */
    OPERATION_KIND_COUNT
};

#define OPERATION_OPEN UINT32_MAX
#define OPERATION_NIL INT64_MIN /* no value: a register that was never written, a grant without a token */

/* An operation whose outcome is OUTCOME_REFUSED never happened; judging passes it over. Where holds are not owned, the
 * end of a hold's lease is one, too: a release that no process called. */
struct operation {
    int64_t value; /* token of a grant or renewal; what was read, written or added; what a cas sets */
    union {
        int64_t from;   /* what a cas expects */
        int64_t lapses; /* of a grant or renewal with a lease of known length: the first position at which the hold may
                           have ended by itself, OPERATION_OPEN: none; without such a lease OPERATION_NIL */
    };
    uint32_t call, end;              /* positions */
    uint32_t called_at, returned_at; /* the input's own number of the event: index of a record, n-th map of a file */
    uint32_t process;                /* that holds by it: its owner, where the input names one */
    uint8_t kind, outcome;
    uint8_t answer;   /* of enum event_type: how it came back, before any policy; EVENT_INVOKE: it did not */
    uint8_t nameless; /* an acquire without an owner: no event names one */
};

enum event_type { EVENT_INVOKE, EVENT_OK, EVENT_FAIL, EVENT_UNKNOWN };
/* As Jepsen calls them; ends with NULL. */
extern const char *const EVENT_TYPE[];

/* What a reader hands over. */
struct operation_event {
    enum event_type type;
    enum operation_kind kind;
    int64_t process;   /* any number; the same process, the same number */
    bool owned;        /* the event names who holds by it, in place of its process: */
    const char *owner; /* a word, or NULL: */
    int64_t owner_number;
    const char *object;  /* its name; NULL: that of the open operation, or the only one */
    int64_t value, from; /* OPERATION_NIL: none */
    bool has_value;      /* of a completion: it states the value itself; else that of the invocation stays */
    bool timed;          /* time_ns is known */
    int64_t time_ns;     /* of one clock, for all events */
    int64_t ttl_ns;      /* the length of the lease that was asked for or given; 0: the event names none */
    uint32_t at;         /* the number that evidence names */
};

enum release_reading { RELEASE_READ_UNKNOWN = 0, RELEASE_READ_NOT_HAPPENED, RELEASE_READ_RELEASED };

/* How ambiguous outcomes are read. */
struct policies {
    enum release_reading failed_release; /* of a lock that the releaser had been granted */
    bool timeout_not_happened;           /* an acquire that came back with an unknown outcome never happened */
    bool leases;       /* a hold may end by itself at any time after it was last confirmed by a grant or renewal */
    bool refused_lost; /* a process that is refused a renewal or release does not hold the lock any more */
    bool owned;        /* a hold is its process's: renewals are judged, and who judges lets leases end */
    bool nests;        /* several holds of one process count: re-entrant locks and semaphores */
};

/* A lease of known length that is not over yet, of a grant, a renewal or - where holds are not owned - its end. */
struct operation_lease {
    int64_t until_ns;
    uint32_t operation;
};

/* A lock or register, and what was done to it. */
struct concurrent_object {
    char *name; /* NULL: the input names none */
    struct operation *list;
    size_t count, room;
    uint32_t clock; /* position of the last event */
    uint64_t ok, unknown;
    struct operation_lease *leases;
    size_t lease_count, lease_room;
};

struct operations {
    struct limits *limits;
    struct policies policies;
    struct concurrent_object *objects;
    size_t object_count, object_room;
    struct operation_process *processes;
    size_t process_count, process_room;
    uint32_t *table; /* of processes, by number */
    size_t table_room;
    uint64_t events;
    bool owners_answered;              /* an owner was named only with the answer */
    bool timed;                        /* there are leases of known length: */
    int64_t latest_ns;                 /* the time of the last event */
    int64_t ttl_least_ns, ttl_most_ns; /* of those that were granted; 0: none was */
    char fault[160];                   /* why an event was not taken */
};

enum take_result {
    TAKEN,
    TAKE_REFUSED, /* it contradicts the events before it: `fault` says how */
    TAKE_FULL     /* a limit was reached: limits->exceeded says which */
};

void operations_begin(struct operations *operations, struct limits *limits, const struct policies *policies);
enum take_result operations_take(struct operations *operations, const struct operation_event *event);
/* A process is gone: its operation under way stays open, and a new process may use its number again. */
void operations_end_process(struct operations *operations, int64_t process);
/* Does that process have an operation under way, and what kind? */
bool operations_under_way(const struct operations *operations, int64_t process, enum operation_kind *kind);
/* The input's number of a process, by the index that an operation has of it. */
int64_t operations_process(const struct operations *operations, uint32_t process);
/* The word of an owner, by the same index; NULL: it has a number. */
const char *operations_owner(const struct operations *operations, uint32_t process);
void operations_end(struct operations *operations);

const char *operation_kind_name(enum operation_kind kind);

/* Operations, and what is known of the input that they come from. A reader fills it (checkers/formats); judging,
 * evidence and writing use it and know no format. */
struct operation_source {
    struct limits limits;
    struct operations operations;
    uint64_t torn, dropped; /* records that the input reports as missing */
    char fault[200];        /* why the operations cannot be judged; empty: they can */
    int64_t initial;        /* what a register holds at the beginning, unless the user says */
    const char *event_noun; /* what the input calls an event: "record" or "event" */
    /* The name of a process, by the number that an operation has of it: "client-1", "process 3". Returns the buffer. */
    const char *(*process_name)(const struct operation_source *source, uint32_t process, char *buffer, size_t size);
};
