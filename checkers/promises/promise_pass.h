/* One pass over a workload: what is known up to the present event. The rules of all promises read it.
 *
 * An owner's holds of a resource are counted twice: how many it certainly has (`least`) and how many it may have
 * (`most`). They differ after calls of unknown outcome and after faults. Every doubt makes the first smaller and the
 * second larger, so that a rule that needs certainty never accuses a right library. */
#pragma once

#include "checkers/promises/promises.h"

enum { CALL_MODES = MODE_PERMIT + 1, PROMISE_NODES_MOST = 16 };
#define PROMISE_ALWAYS INT64_MAX

struct promise_client {
    int client;
    int64_t ended_ns;                        /* PROMISE_ALWAYS: it has not ended */
    bool lost_message;                       /* or one was answered with an error, or its connection ended */
    bool closed_connection;                  /* because a message on it was late: FAULT_CUT */
    bool may_give_back;                      /* it has asked for what may give back or shorten a hold */
    int64_t late_release_ns;                 /* an earlier release or renewal may take effect until then */
    int64_t late_command_ns;                 /* any earlier command may take effect until then */
    int64_t executed_ns[PROMISE_NODES_MOST]; /* when servers executed its latest commands; INT64_MIN: never */
    bool executed;
};

/* The owner of holds of one resource: a thread, a lock object or both (enum call_owner). */
struct promise_owner {
    int thread, lock; /* 0 where the library does not tell them apart */
    int resource;
    struct promise_client *client;
    int least[CALL_MODES], most[CALL_MODES]; /* grants that were not given back: certainly; possibly */
    int pending, releasing;                  /* acquires, releases under way */
    uint32_t acquires, releases;             /* calls so far */
    const char *doubt;                       /* why `least` is 0; NULL: nothing was doubted */
    uint32_t doubts;                         /* how often a fault or a refused release made `least` 0 */
    int64_t since_ns;                        /* when disturbances began to count for the certain hold */
    int64_t end_ns;                          /* its lease lasts until then; PROMISE_ALWAYS: no call gave it an end */
    bool renewed;                            /* and the watchdog keeps it */
    bool watched;                            /* the possible hold has a grant that the watchdog may keep */
    bool mixed;                              /* it has grants that the watchdog keeps, and others */
    uint32_t began;                          /* ASK of the first acquire of the possible hold */
    uint32_t grant[CALL_MODES];              /* ANSWER of the latest grant */
    uint32_t answered;                       /* ANSWER of the latest acquire that it may have been granted */
    uint32_t excused;                        /* its latest grant that was named as an excused second hold */
    uint32_t superseded;                     /* ANSWER of a later exclusive grant of another owner; 0: not so */
    int64_t touched_ns;                      /* the latest answer of its calls */
    uint32_t lost;                           /* event since which its watched hold is seen to be lost; 0: not so */
    int64_t lost_ns;                         /* that event's stamp */
    bool told;                               /* a notice of it came, or is not needed any more */
};

struct promise_call {
    const struct call_event *ask; /* NULL: the event is not an ASK */
    struct promise_owner *owner;
    struct promise_resource *resource;
    uint32_t answer;                     /* index; 0: not answered yet */
    bool certain;                        /* when asked its owner certainly held in its mode */
    bool nothing;                        /* when asked its owner certainly held nothing */
    bool alone;                          /* when asked its owner possibly held nothing, other calls apart */
    bool disturbed;                      /* its client, or a server, was disturbed while it was under way */
    bool releasing;                      /* when asked a release of its owner was under way */
    bool connection_closed;              /* by its client while it was under way: FAULT_CUT */
    bool crowded;                        /* when asked another acquire of its owner was under way */
    bool counted;                        /* a broken promise of it was noted, which is noted once */
    uint32_t acquires, releases, doubts; /* of its owner, before it */
    uint32_t disturbances;               /* before it */
    uint32_t cancelled;                  /* index of the ASK of its cancellation; 0: not cancelled */
    int64_t key_ends_ns; /* of the release of all that certainly is held: when its key was to end; or 0 */
    int64_t token_floor; /* the greatest token of the resource's grants before it; 0: no grant */
    uint32_t token_from; /* that grant's ANSWER */
};

/* A fault or a late message: of `client`, or of all clients if it is a server's. */
struct promise_disturbance {
    const struct call_event *event;
    int64_t until_ns; /* PROMISE_ALWAYS: its effects have no end */
};

struct promise_resource {
    int resource;
    int64_t absent_ns;  /* when its lease key was last seen to be absent; INT64_MIN: never */
    uint32_t absent;    /* that event */
    int64_t woken_ns;   /* the release that should have woken a waiter which was missed; INT64_MIN: none */
    int64_t idle_ns;    /* since then it is free, somebody waits, nothing disturbs; PROMISE_ALWAYS: not so */
    int64_t longest_ms; /* the longest lease that was asked for */
    int64_t token;      /* the greatest of its grants */
    uint32_t token_event;
    int64_t ends_ns; /* when its lease key was to end, as it was last seen; 0: it had no end, or was not seen */
    int renewals;    /* how often that has moved since a call about it was asked or answered */
};

struct promise_pass {
    const struct library_facts *facts;
    const struct call_event *events;
    size_t count;
    uint32_t now; /* index of the present event */
    const struct call_event *event;
    int64_t now_ns;
    struct promise_call *calls; /* by index of their ASK event */
    struct promise_client *clients;
    struct promise_owner *owners;
    struct promise_resource *resources;
    struct promise_disturbance *disturbances;
    uint32_t client_count, owner_count, resource_count, disturbance_count;
    bool clock, data;    /* a clock was set; a server may have lost data */
    bool server_clock;   /* the clock that was set was a server's */
    bool servers_failed; /* a server did more than stand still: it answered with an error, lost its connections, ... */
    bool servers_lost;   /* a server lost its connections: also those of clients that have not asked for anything yet */
    bool over;           /* after EVENT_END */
    uint32_t servers_down;             /* of the disturbances: FAULT_DOWN and FAULT_SILENT */
    bool silent;                       /* one of them was FAULT_SILENT */
    uint32_t down;                     /* the latest of them */
    struct promise_findings *findings; /* the caller's */
};

/* False: there is no memory. The caller closes the pass in either case. */
bool promise_pass_open(struct promise_pass *pass, const struct library_facts *facts, const struct call_event *events,
                       size_t count);
void promise_pass_close(struct promise_pass *pass);

/* Made at the first event that names them. The tables have room for one an event and never move. */
struct promise_client *client_of(struct promise_pass *pass, int client);
struct promise_owner *owner_of(struct promise_pass *pass, const struct call *call);
struct promise_resource *resource_of(struct promise_pass *pass, int resource);

/* Two holds that are not required to exclude each other; as promise_break. */
void promise_excuse(struct promise_pass *pass, uint32_t other, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes a broken promise that the present event and `other` show. */
void promise_break(struct promise_pass *pass, enum promise promise, uint32_t other, int64_t expected_ms,
                   int64_t found_ms, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* "client-1 (thread-1, lock-1)" */
struct caller_name {
    char text[64];
} caller_name_of(const struct call *call);
const char *mode_text(enum call_mode mode);
