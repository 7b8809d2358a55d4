/* The course of a workload up to an event: what the rules of all promises go by. promise_course.c keeps it.
 *
 * An owner's holds of a resource are counted twice: how many it certainly has and how many it may have. They differ
 * after calls of unknown outcome, and after faults. All that is not certain makes the first smaller and the second
 * larger. */
#ifndef LOCKSTORM_CHECKERS_PROMISE_COURSE_H
#define LOCKSTORM_CHECKERS_PROMISE_COURSE_H

#include "checkers/promises/promises.h"

enum { CALL_MODES = MODE_PERMIT + 1, PROMISE_NODES_MOST = 16, NO_EVENT = -1 };
enum { PROMISE_NS_PER_MS = 1000000 };
#define PROMISE_ALWAYS INT64_MAX

/* A client, and what struck it. */
struct promise_client {
    int client;
    int64_t gone_ns;                         /* PROMISE_ALWAYS: it has not ended */
    bool cut;                                /* a message was lost, answered with an error, or its connection ended */
    bool has_cut;                            /* it closed a connection because a message on it was late: FAULT_CUT */
    bool gives_back;                         /* it has asked for what may give back or shorten a hold */
    int64_t harm_ns;                         /* an earlier release or renewal may take effect until then */
    int64_t ghost_ns;                        /* any earlier command may take effect until then */
    int64_t executed_ns[PROMISE_NODES_MOST]; /* when servers executed its latest commands; INT64_MIN: none */
    bool executed;
};

/* An owner of holds of one resource. */
struct promise_owner {
    int thread, lock; /* 0 where the library does not tell them apart */
    int resource;
    struct promise_client *client;
    int least[CALL_MODES], most[CALL_MODES]; /* grants that were not given back: certainly; possibly */
    int pending, releasing;                  /* acquires, releases under way */
    uint32_t acquires, releases, harms;      /* calls so far; how often `least` became 0 for a reason of the faults */
    int64_t since_ns;                        /* when the first acquire of the certain hold was asked */
    int64_t end_ns;                          /* its lease lasts until then; PROMISE_ALWAYS: no call gave it an end */
    bool renewed;                            /* and the watchdog keeps it */
    bool watched;                            /* the possible hold has a grant that the watchdog may keep */
    bool mixed;                              /* it has grants that the watchdog keeps, and others */
    uint32_t began;                          /* ASK of the first acquire of the possible hold */
    uint32_t grant[CALL_MODES];              /* ANSWER of the latest grant */
    int64_t touched_ns;                      /* the latest answer of its calls */
};

/* A call: of an ASK event. */
struct promise_call {
    const struct call_event *ask; /* NULL: the event is not an ASK */
    struct promise_owner *owner;
    uint32_t answer;                    /* index; 0: none */
    bool certain;                       /* when asked its owner certainly held in its mode */
    bool nothing;                       /* when asked its owner certainly held nothing */
    bool alone;                         /* when asked its owner possibly held nothing, other calls apart */
    bool struck;                        /* its client, or a server, was struck while it was under way */
    bool releasing;                     /* when asked a release of its owner was under way */
    bool cut;                           /* while it was under way its client closed a connection: FAULT_CUT */
    bool crowded;                       /* when asked another acquire of its owner was under way */
    bool counted;                       /* a broken promise to answer it was noted */
    uint32_t acquires, releases, harms; /* of its owner, before it */
    uint32_t strikes;                   /* strikes before it */
    uint32_t cancelled;                 /* index of the ASK of its cancellation; 0: none */
    int64_t token_floor;                /* the greatest token of the resource's grants before it; 0: none */
    uint32_t token_from;                /* that grant's ANSWER */
};

/* A fault or a late message: of `client`, or of all if a server was struck. */
struct promise_strike {
    const struct call_event *event;
    int64_t until_ns; /* PROMISE_ALWAYS: what it may bring about has no end */
};

struct promise_resource {
    int resource;
    int64_t absent_ns;  /* when its lease key was last seen to be absent; INT64_MIN: never */
    uint32_t absent;    /* that event */
    int64_t idle_ns;    /* since then it is free, somebody waits and nothing strikes; PROMISE_ALWAYS: not so */
    int64_t longest_ms; /* the longest lease that was asked for */
    int64_t token;      /* the greatest of its grants */
    uint32_t token_event;
    int64_t ends_ns; /* when its lease key was to end, as it was last seen; 0: it had no end, or was not seen */
    int renewals;    /* how often that has moved since a call about it was asked or answered */
};

struct promise_course {
    const struct library_facts *facts;
    const struct call_event *events;
    size_t count;
    uint32_t now; /* index of the event */
    int64_t now_ns;
    struct promise_call *calls; /* by index of their ASK event */
    struct promise_client *clients;
    struct promise_owner *owners;
    struct promise_resource *resources;
    struct promise_strike *strikes;
    uint32_t client_count, owner_count, resource_count, strike_count;
    bool clock, data;  /* a clock was set; a server may have lost data */
    bool server_cut;   /* a server answered with an error or lost its connections */
    bool servers_lost; /* a server lost its connections: also those of clients that have not asked for anything yet */
    bool over;         /* after EVENT_END */
    struct broken_promise *found;
    int found_count, most;
};

/* false: there is no memory. */
bool course_open(struct promise_course *course, const struct library_facts *facts, const struct call_event *events,
                 size_t count);
void course_close(struct promise_course *course);

/* Takes the event `course->now` in; rules are asked afterwards. */
void course_take(struct promise_course *course);

/* The call that an ANSWER answers, or NULL: it answers nothing. */
struct promise_call *course_answered(const struct promise_course *course);

/* The resource's entry; made at the first event that names it. */
struct promise_resource *course_resource(struct promise_course *course, int resource);

/* The same of a resource that was named already; NULL: it was not. */
struct promise_resource *resource_known(const struct promise_course *course, int resource);

/* The library's numbers, in ms. */
int64_t lease_of_call(const struct promise_course *course, const struct call *call); /* PROMISE_ALWAYS: no end */
int64_t grain_ms(const struct promise_course *course); /* what rounding may take from a lease or add to it */
int64_t timer_ms(const struct promise_course *course);
int majority_of(const struct promise_course *course);
int64_t watchdog_spare_ms(const struct promise_course *course); /* least that a renewed lease has left */

/* Whether the call has no answer yet. */
bool is_under_way(const struct promise_call *call);
bool is_renewed(const struct call *call);

/* Whether the owner certainly holds now; in a mode. */
bool holds_certainly(const struct promise_course *course, const struct promise_owner *owner);
bool holds_in_mode(const struct promise_course *course, const struct promise_owner *owner, enum call_mode mode);

/* Whether it may hold now, in any mode. */
bool may_hold(const struct promise_owner *owner);

/* How long the client, or a server, was struck from `from_ns` to `to_ns`, in ns, every strike for itself; a strike
 * whose end is open, or that took more than time: PROMISE_ALWAYS. */
int64_t struck_ns(const struct promise_course *course, const struct promise_client *client, int64_t from_ns,
                  int64_t to_ns);

/* The same, and where one client may hold up another at a server, for how long others were late or stood still. */
int64_t held_up_ns(const struct promise_course *course, const struct promise_client *client, int64_t from_ns,
                   int64_t to_ns);

/* Whether a message to the client may be lost, with or without a connection. */
bool may_have_missed(const struct promise_client *client);

/* Whether a strike on the client, or a server, has not ended. */
bool is_struck(const struct promise_course *course, const struct promise_client *client);

int64_t ms_of(int64_t ns);
/* Without overflow; PROMISE_ALWAYS stays. */
int64_t after_ms(int64_t from_ns, int64_t ms);

/* Notes a broken promise, shown by the present event and `other`. */
void promise_break(struct promise_course *course, enum promise promise, uint32_t other, int64_t expected_ms,
                   int64_t found_ms, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* "client 1, thread 0" of a call, in a buffer of `size` bytes; returns the buffer. */
const char *caller_text(const struct call *call, char *buffer, size_t size);
const char *mode_text(enum call_mode mode);

#endif
