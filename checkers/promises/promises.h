/* Promises: what each call of a lock library may answer, and must have brought about.
 *
 * A workload is what all clients do: for each client and each of its threads a list of calls. The player records
 * events, and promises_judge says which promises the library broke. It is pure: no input, no output, no servers. What
 * is not certain is decided for the library; docs/promises.md has each promise's conditions and excuses.
 *
 * Times are in ns of one clock that no fault touches; they never fall from one event to the next. Clients, threads,
 * lock objects, resources and nodes are numbers from 0. Decision 0117. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/history/outcome.h"

/* CALL_REQUEST is of an application: `form` names it, and no promise is about it. */
enum call_verb { CALL_ACQUIRE, CALL_RELEASE, CALL_RENEW, CALL_IS_HELD, CALL_CANCEL, CALL_WORK, CALL_REQUEST };
enum call_mode { MODE_EXCLUSIVE, MODE_READ, MODE_WRITE, MODE_PERMIT };

/* Who owns a hold: a thread of a client, whatever lock object it uses; a lock object, whatever thread uses it; both. */
enum call_owner { OWNER_THREAD, OWNER_OBJECT, OWNER_THREAD_OBJECT };

/* Which lease an acquire asks for: `lease_ms`; the library's default, renewed by its watchdog; one without end; the
 * library's default, which nothing renews. */
enum call_lease { LEASE_GIVEN, LEASE_RENEWED, LEASE_ENDLESS, LEASE_DEFAULT };

/* How long an acquire waits: it tries once; for `wait_ms`; without a limit. */
enum call_wait { WAIT_NONE, WAIT_TIME, WAIT_FOREVER };

/* By when the library tells that a hold which its watchdog keeps is lost. */
enum loss_notice { LOSS_NOT_TOLD, LOSS_BY_RENEWAL, LOSS_BY_LEASE };

/* What the library says of itself. */
struct library_facts {
    enum call_owner owner;
    int permits;              /* of MODE_PERMIT; 0 means 1 */
    int64_t default_lease_ms; /* of LEASE_RENEWED and LEASE_DEFAULT; 0: none */
    int watchdog_divisor;     /* the watchdog renews after its lease / this; 0 means 3 */
    int64_t lease_unit_ms;    /* the library rounds leases to multiples of this; 0 means 1 */
    bool reenters;            /* an owner may acquire again what it holds in the same mode */
    bool write_reads;         /* a writer may also read */
    bool tokens;              /* each grant has a token */
    bool validity;            /* each grant says until when it is valid */
    bool lease_key;           /* EVENT_LEASE reads a key that every hold of the resource needs */
    bool lenient_release;     /* documented: a release by somebody who holds nothing may be answered ok */
    bool transactions;        /* what one client has begun at a server may hold up another one's command there */
    bool fair;                /* it grants in the order of requests */
    bool told;                /* a release wakes a waiter: waiters need not poll */
    bool parts;               /* a waiter may hold some of what the lock is made of, with their lease */
    int nodes;                /* a hold needs a majority of so many servers; 0 means 1 */
    enum loss_notice loss_notice;
    int64_t silence_ms; /* a hold ends, as documented, when its client is silent for so long; 0: it does not */
    int64_t timer_ms;   /* its timers fire at most this late; 0 means 1 */
    int64_t place_ms;   /* a waiter that has ended keeps no place for longer than this; 0: it may for ever */
    int64_t poll_ms;    /* the longest time between two tries of a waiter; 0: not stated */
};

/* What one fault did. */
enum fault_effect {
    FAULT_STILL,  /* the client or the server does nothing until `until_ns` */
    FAULT_GONE,   /* the client has ended and comes no more */
    FAULT_CLOCK,  /* the clock of the client or of the server was set */
    FAULT_DATA,   /* a server may have lost data: a restart without it, a failover, a stalled replica */
    FAULT_ERROR,  /* a command was answered with an error, or a connection ended */
    FAULT_LOST,   /* a message was lost for good; of a server, its connections with all that was on them */
    FAULT_DOUBLE, /* a message arrives twice, the last time at `until_ns` */
    FAULT_DOWN,   /* one of several servers is down for good, and a majority is left: it refuses connections */
    FAULT_SILENT, /* the same, but it answers nothing */
    FAULT_CUT,    /* the client has closed a connection because a message on it was late */
};

enum call_event_kind {
    EVENT_ASK,      /* a call was asked: `asked` */
    EVENT_ANSWER,   /* `call` was answered: outcome, token, valid_until_ns, timers_late_ns, cancelled */
    EVENT_EXECUTED, /* server `node` executed a command of `client`: perhaps longer_ms, makes, of `resource` */
    EVENT_LEASE,    /* at a quiet moment server `node` said how long the lease key of `resource` lives: remaining_ms */
    EVENT_FAULT,    /* a fault of `client` or of a server: effect, fault, until_ns */
    EVENT_LATE,     /* a message of `client` is delayed until `until_ns`: `reply` */
    EVENT_IDLE,     /* nothing is under way but waits: every message has arrived, every program is quiet */
    EVENT_END,      /* the workload is over: all calls that could be made were made; EVENT_LEFT follow */
    EVENT_LEFT,     /* the server still has `name`, of `resource` */
    EVENT_NOTICE,   /* the library told by itself that a hold is lost: `asked` has its thread, lock and resource */
    EVENT_KINDS
};

enum { PROMISES_SHOWN = 32 };
enum { ANY_SERVER = -1, LEASE_WITHOUT_END = -1, LEASE_NO_KEY = -2 };
#define LATE_FOR_EVER INT64_MAX

struct call {
    int client, thread, lock, resource;
    enum call_verb verb;
    enum call_mode mode;
    enum call_wait wait;
    enum call_lease lease; /* of acquire; of renew LEASE_GIVEN or LEASE_DEFAULT */
    int64_t wait_ms;       /* WAIT_TIME; of CALL_WORK: how long the work takes */
    int64_t lease_ms;      /* LEASE_GIVEN */
    uint32_t cancels;      /* CALL_CANCEL: index of the ASK event of the call that it cancels */
    bool over;             /* it is made with a context that has ended before */
    bool again;            /* of a release: the same is asked once more, because it failed */
    const char *form;      /* the library's overload, or NULL; only sentences use it */
};

struct call_event {
    enum call_event_kind kind;
    int64_t at_ns;
    struct call asked;      /* ASK */
    int place;              /* ASK: of the call among the lines of the workload, from 1; 0: it has no line; not read */
    uint32_t call;          /* ANSWER: index of its ASK event */
    enum outcome outcome;   /* ANSWER */
    int64_t token;          /* ANSWER of an acquire: 0: none */
    int64_t valid_until_ns; /* ANSWER of an acquire or a renew: 0: it says nothing */
    int64_t timers_late_ns; /* ANSWER: how late sleeps and timers of its client ended since the ASK, together */
    bool cancelled;         /* ANSWER: the library raised its cancellation error */
    int client;             /* EXECUTED, LATE; FAULT: ANY_SERVER: a fault of a server */
    int node;               /* EXECUTED, LEASE */
    int resource;           /* EXECUTED, LEASE, LEFT */
    int64_t longer_ms; /* EXECUTED: its lease key ends so much later than before; 0: no later; or LEASE_WITHOUT_END */
    bool makes;        /* EXECUTED: its lease key was not there before, and lives for longer_ms now */
    int64_t remaining_ms; /* LEASE: or LEASE_WITHOUT_END, LEASE_NO_KEY */
    enum fault_effect effect;
    int fault;        /* FAULT: the kind of fault that the producer knows; not read */
    int64_t until_ns; /* FAULT, LATE: LATE_FOR_EVER if there is no end; 0 means at_ns */
    bool reply;       /* FAULT_LOST, FAULT_DOUBLE, LATE: a server had executed the command; false: or it had not yet */
    char name[64];    /* LEFT */
};

enum promise {
    PROMISE_MUTUAL_EXCLUSION,
    PROMISE_OWNERSHIP,
    PROMISE_LEASE_SHORT,
    PROMISE_LEASE_LONG,
    PROMISE_LEASE_ENDLESS,
    PROMISE_RENEWAL,
    PROMISE_VALIDITY,
    PROMISE_WAIT,
    PROMISE_TOKEN,
    PROMISE_REFUSAL,
    PROMISE_CANCEL,
    PROMISE_RELEASE,
    PROMISE_LOSS,
    PROMISE_LIVENESS,
    PROMISE_FAIRNESS,
    PROMISE_PLACE,
    PROMISE_RESIDUE,
    PROMISE_ANSWER,
    PROMISES
};

struct broken_promise {
    enum promise promise;
    uint32_t event, other; /* indices of the events that show it; other == event: one does */
    int64_t expected_ms, found_ms;
    char sentence[240];
};

/* What the judge found, each in the order of the events that show it; what has no room is left out. */
struct promise_findings {
    struct broken_promise broken[PROMISES_SHOWN];
    /* Of mutual exclusion: a grant while another owner had not asked to give back. The sentence says why that is
     * allowed. */
    struct broken_promise excused[PROMISES_SHOWN];
    int broken_count, excused_count;
};

/* False: there is no memory. Keeps nothing. */
bool promises_judge(const struct library_facts *facts, const struct call_event *events, size_t count,
                    struct promise_findings *findings);

/* "mutual_exclusion", "lease-too-short", ...; NULL if there is no such promise. */
const char *promise_name(enum promise promise);
