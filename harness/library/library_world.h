/* The world of one schedule of a library: programs that host it, real servers, the messages between them, and one
 * virtual time. It makes no choices itself (harness/search does).
 *
 * Everything that a program sends waits until the schedule lets it reach its server, and every answer until the
 * schedule lets it reach the program; a program runs only until it is quiet. Time passes only when nothing is under
 * way, up to the next moment at which somebody goes on. So the workload, the order of steps and the faults between them
 * determine everything that happens, as far as the library's program is deterministic.
 *
 * Programs outlive a schedule: starting one takes longer than most schedules. A *session* is a number of schedules with
 * the same programs, which begins with new ones. */
#pragma once

#include "harness/library/library_link.h"
#include "harness/library/library_offer.h"
#include "harness/library_service/library_server.h"
#include "harness/search/search_world.h"

struct search_settings;

enum { LIBRARY_LOCKS = 100 /* workload.h */ };
enum { LIBRARY_CLIENTS = WORKLOAD_CLIENTS, LIBRARY_LINKS = LINKS_PER_CLIENT, LIBRARY_NODES = 5, LIBRARY_RESOURCES = 3 };
enum { LIBRARY_STEPS_MOST = 4000, LIBRARY_PATH = 512 };
enum { LIBRARY_CHOICES = LIBRARY_CLIENTS * (WORKLOAD_THREADS + 2 * LIBRARY_LINKS) + 1 };

struct library_world;
struct application;

/* How the world speaks to its programs, and judges what they have answered: to adapters of libraries
 * (ADAPTER_PROTOCOL), or to the instances of an application (harness/application). No slot is NULL. What returns bool
 * returns false with the world's reason. */
struct hosted_protocol {
    const char *program_title; /* "the program of client-", before its number */
    int property_count;
    const char *(*property_name)(int property);
    /* The path of a client's program. */
    const char *(*program)(const struct library_world *world, int client);
    /* When the world is opened: fills in world->offer. */
    bool (*offer)(struct library_world *world);
    /* A client's program was made and has not run: adds to what it reaches. */
    void (*connect)(struct library_world *world, int client);
    /* The number of clients whose programs last from one schedule to the next. Those behind them are jobs: a call
     * starts the program, whose end is its answer. */
    int (*lasting)(const struct library_world *world);
    /* Starts the program of a client that lasts, and lets everything happen until it can be asked. */
    bool (*begin)(struct library_world *world, int client);
    /* The programs of all clients of a schedule run. */
    bool (*begun)(struct library_world *world, uint64_t seed);
    /* A schedule has ended: the program is as before it. */
    bool (*forget)(struct library_world *world, int client);
    /* The servers have what a schedule begins with. */
    bool (*empty)(struct library_world *world);
    /* Draws what clients ask for. */
    void (*draw)(struct library_world *world, struct workload *workload, uint64_t seed);
    /* Asks a thread's next call, which is no work. */
    bool (*ask)(struct library_world *world, int client, int thread);
    /* Takes what a client's program has answered. True: there was something. */
    bool (*hear)(struct library_world *world, int client);
    /* Judges world->last, of a schedule that was played to its end. */
    void (*judge)(struct library_world *world, const struct search_settings *settings, struct search_outcome *outcome);
    /* Adds what the program, or its file, says of itself. */
    void (*introduce)(const struct library_world *world, json_t *result);
    /* The evidence of the last schedule is kept, too: world->kept was. */
    void (*keep)(struct library_world *world);
    /* Adds the evidence of the last schedule, or of the one that was kept. */
    void (*describe)(const struct library_world *world, bool kept, json_t *result);
    const struct portfolio_turn *portfolio;
    int portfolio_turns;
    int usual_courses;   /* before a search */
    uint64_t steps_most; /* of a schedule, which is cut short then */
    bool acts_between;   /* programs may have something to do between schedules */
};

extern const struct hosted_protocol ADAPTER_PROTOCOL;

struct library_settings {
    const struct hosted_protocol *protocol;
    struct application *application; /* of APPLICATION_PROTOCOL; the caller's */
    const char *database;            /* of an application on PostgreSQL; NULL: that of locks */
    const char *program;             /* the adapter's path */
    const char *directory;           /* for sockets and logs */
    int64_t lease_ms;
    int64_t lasts_ms;  /* a schedule goes on for so long at least, while programs have something to do */
    int64_t timers_ms; /* schedules begin at a multiple of it, since the start of the session; 0: at a whole second */
    int permits, nodes;
    uint64_t seed; /* of the search: programs start with it */
    const struct server_kind *services[LIBRARY_NODES];
    const char *addresses[LIBRARY_NODES], *starts[LIBRARY_NODES]; /* of servers (struct library_server); the caller's */
    int ports[LIBRARY_NODES];       /* where other servers say that this one is; 0: none knows it */
    const char *master;             /* the name of the master that sentinels know */
    const char *forms[OFFER_FORMS]; /* those that are drawn; the caller's */
    int form_count;                 /* 0: all */
};

struct library_thread {
    int next;              /* its next call */
    bool asked;            /* and that is not answered */
    int question;          /* its id */
    uint32_t ask;          /* index of its event */
    int64_t asked_late_ns; /* hosted_late_ns then */
    int64_t idle_until_ns;
    int64_t cancel_at_ns; /* 0: never */
    int messages;         /* of its client that have gone on since it was asked */
    int cancel;           /* id of the question that cancels it; 0: no such question is open */
    uint32_t cancel_ask;  /* index of that event */
};

struct library_client {
    struct hosted_program program;
    bool runs;               /* it was started, and neither killed nor found to have ended */
    bool crashed;            /* it was killed in this schedule */
    int64_t paused_until_ns; /* 0: it is not */
    struct link_door doors[LIBRARY_NODES];
    struct library_link links[LIBRARY_LINKS];
    int link_count, links_used;
    int question; /* id of the last one */
    int control;  /* id of a question that does not belong to a call; 0: it is answered */
    enum outcome control_outcome;
    json_t *control_answer; /* owned */
    struct library_thread threads[WORKLOAD_THREADS];
    bool acquired[LIBRARY_LOCKS]; /* whether an acquire was asked of the lock object in this schedule */
    bool has_played;              /* this program, in an earlier schedule */
    bool acts;                    /* it has connected, or asked for something, since it was to rest before a schedule */
};

/* What a schedule has shown. */
struct library_evidence {
    struct promise_findings found;
    struct call_event *events; /* of the last schedule the world's, else owned */
    size_t event_count;
};

struct library_world {
    struct search_world search; /* first member: this world as one to search; its reason says why it cannot go on */
    struct library_settings settings;
    struct library_offer offer;
    struct shared_page *page;
    struct library_server servers[LIBRARY_NODES];
    struct library_client clients[LIBRARY_CLIENTS];
    struct workload workload;
    int64_t began_ns;          /* the page's clock at the beginning of the schedule */
    struct call_event *events; /* owned */
    size_t event_count, event_room;
    uint64_t commands;
    int64_t
        key_ends_ns[LIBRARY_RESOURCES];   /* of lease keys, after the last command; INT64_MAX: without end; 0: no key */
    int64_t busy_ns;                      /* the page's clock when `turns` was last 0 */
    enum choice_kind down[LIBRARY_NODES]; /* what has ended the server; CHOICE_NONE: it runs */
    int turns;                            /* messages that have reached a server at this time */
    bool stopped;                         /* no more can happen, although calls are not answered */
    bool never_grants;                    /* to a program that was alone, before its first schedule of this session */
    bool excludes_end;                    /* a client crashed, or a program has to be started anew for another reason */
    char drawn[WORKLOAD_SETTINGS];        /* the settings of this session's programs, once a schedule of it was drawn */
    char opened[WORKLOAD_SETTINGS];       /* the settings that programs which run were opened with */
    bool has_drawn;                       /* the first of these */
    struct library_evidence last, kept;
    const struct link_observer *observer; /* of new connections; NULL: nobody */
    uint64_t serials;                     /* of connections, given out */
    const struct schedule *played;        /* of a schedule that is watched, as it is played; NULL: nobody watches */
    size_t noted;                         /* its deviations in `deviations` */
    json_t *deviations, *heard;           /* owned; `heard`: what servers heard of it (heard_commands.h) */
};

static inline const struct library_world *library_world_of(const struct search_world *search) {
    return (const struct library_world *)search;
}

static inline bool library_is_job(const struct library_world *world, int client) {
    return client >= world->settings.protocol->lasting(world);
}

/* Which of the servers that keep locks independently of each other this one belongs to: those of a cluster, and a
 * master with its sentinels, are one. */
static inline int library_place(const struct library_world *world, int node) {
    return world->offer.topology == TOPOLOGY_SINGLE ? node : 0;
}

/* `number`: of struct library_link. */
static inline int library_link_number(int client, int number) {
    return client * LIBRARY_LINKS + number;
}

/* The connection with this library_link_number; NULL: it has not been used in this schedule. */
static inline const struct library_link *library_link_look(const struct library_client *clients, int who) {
    const struct library_client *client = &clients[who / LIBRARY_LINKS];
    for (int each = 0; each < client->link_count; each++)
        if (client->links[each].number == who % LIBRARY_LINKS) return &client->links[each];
    return NULL;
}

static inline struct library_link *library_link_find(struct library_client *clients, int who) {
    const struct library_link *link = library_link_look(clients, who);
    return link ? &clients[who / LIBRARY_LINKS].links[link - clients[who / LIBRARY_LINKS].links] : NULL;
}

/* --- library_world.c --- */

extern const struct choice_space HOSTED_CHOICES;

/* Connects to the servers and asks the library what it offers. False with world->search.reason. */
bool library_world_open(struct library_world *world, const struct library_settings *settings);
void library_world_close(struct library_world *world);
/* Makes world->search of a world that has these settings and need not be open. Its properties are promises of
 * libraries; its places are the calls that struck clients were making. */
void library_search_make(struct library_world *world, const struct library_settings *settings);
/* Messages that ask for the same - that have the same sort - are one situation, and the answers to them another one. */
uint64_t library_situation(bool is_answer, uint64_t sort);

/* Ends the programs: the next schedule begins a session. */
void library_session_end(struct library_world *world);

/* For protocols. Returns false, with the world's reason, unless there is one already. */
__attribute__((format(printf, 2, 3))) bool library_give_up(struct library_world *world, const char *format, ...);
/* Opens the addresses at which a client's program reaches its servers. */
bool library_doors_open(struct library_world *world, int client);
/* Starts a client's program, and runs it until it is quiet. Its random numbers come from the seed and its number. */
bool library_program_start(struct library_world *world, int client, uint64_t seed);
/* Deletes what is at the servers. */
void library_servers_flush(struct library_world *world);

/* Operations of struct search_world. When a schedule has begun, servers are empty, the programs of the workload's
 * clients run and have made no call. Choices are of steps only, not of faults. */
bool library_begin(struct search_world *search, const struct workload *workload, uint64_t seed, uint64_t number);
int library_choices(struct search_world *search, struct choice *choices);
bool library_can_take(const struct library_world *world, struct choice step);
bool library_apply(struct search_world *search, struct choice choice);
/* Ends a schedule: what is under way arrives, time passes for as long as a lease and a renewal would last, and what is
 * left at the servers is noted. True: the programs can be used for another schedule. */
bool library_end(struct library_world *world);

/* --- library_events.c: the events that the judge of a schedule reads, in their order (checkers/promises) --- */

/* Adds a copy, with the schedule's time. Returns its index. */
uint32_t library_event_add(struct library_world *world, struct call_event event);
/* The next call of a thread; NULL: it has made all of them. */
const struct planned_call *library_next_call(const struct library_world *world, int client, int thread);
/* A thread's next call was asked: adds it. */
void library_ask_note(struct library_world *world, int client, int thread, const struct call *call);
/* Looks at the servers how long the lock of each resource still lasts, and adds what has changed. */
void library_leases_note(struct library_world *world);
/* The latest EVENT_EXECUTED is of that server: adds whether a lease key lives longer since. */
void library_longer_note(struct library_world *world, struct library_server *server);
/* Notes what is left at the servers. */
void library_residue_note(struct library_world *world);
/* The name of a resource: "account", "account-2", ... */
const char *library_resource_name(int resource, char name[OFFER_NAME]);
/* The resource with this name, or -1. */
int library_resource_number(const char *name);

/* --- library_calls.c: questions to adapters, and their answers (docs/adapters.md) --- */

/* The keys of a call's question besides id; the caller's. */
json_t *calls_body(const struct library_offer *offer, const struct call *call);
/* Slots of ADAPTER_PROTOCOL. */
bool adapter_call_ask(struct library_world *world, int client, int thread);
bool adapter_answers_hear(struct library_world *world, int client);
/* Cancels the call of a thread that is under way. */
bool calls_cancel(struct library_world *world, int client, int thread);
/* Cancels calls of a client after a number of its messages; `gone_on`: one more has. False: it takes no question. */
bool calls_cancel_at(struct library_world *world, int client, bool gone_on);
/* Asks what is no call of a thread; `body`: its keys besides id, which this takes. */
bool calls_ask_control(struct library_world *world, int client, json_t *body);

/* --- library_faults.c: what each fault does in the world of a library --- */

bool library_allows(const struct library_world *world, struct choice fault);
/* A fault that library_allows strikes. */
void library_strike(struct library_world *world, struct choice fault);
/* A connection to a server that hangs: nothing on it goes on. */
void library_link_silence(struct library_link *link);

/* --- library_settle.c: until nothing happens by itself any more --- */

/* Lets every program that has something to do run until it is quiet, and takes what it says and sends. What only opens
 * or keeps up a connection goes on at once. False with world->search.reason. */
bool library_settle(struct library_world *world);
/* The next moment of the page's clock at which something happens by itself; INT64_MAX: never. */
int64_t library_next_ns(const struct library_world *world);
/* Moves the clock of everything to that moment. */
void library_clock_move(struct library_world *world, int64_t mono_ns);
/* Everything arrives in order, and time passes, until the control question of the client is answered. False: it was
 * not, within limit_ms of the page's clock, or world->search.reason. */
bool library_drain(struct library_world *world, int client, int64_t limit_ms);
/* The same until that moment. `notes`: the servers are asked for leases. */
bool library_drain_until(struct library_world *world, int64_t mono_ns, bool notes);

bool library_is_paused(const struct library_world *world, int client);
/* Whether the oldest message goes on when it is chosen. */
bool library_request_is_due(const struct library_world *world, const struct library_link *link);
bool library_answer_is_due(const struct library_world *world, const struct library_link *link);
/* Whether no message is on its way that nothing holds. */
bool library_is_quiet(const struct library_world *world);
/* Notes the oldest request and what becomes of it, if the schedule is watched. */
void library_request_note(struct library_world *world, struct library_link *link, enum heard_fate fate);
/* The oldest request reaches its server, and what the server says at once is there. */
void library_request_arrives(struct library_world *world, struct library_link *link);

/* --- workload_draw.c: draws a workload from a seed, shaped by what the library offers --- */

void workload_draw(struct workload *workload, const struct library_offer *offer, int64_t lease_ms, uint64_t seed);
/* Draws what programs are opened with: every second time what the library has by itself. */
void settings_draw(const struct library_offer *offer, uint64_t seed, char settings[WORKLOAD_SETTINGS]);

/* --- deviation_json.c: what each deviation of a watched schedule changes --- */

/* Before the last deviation takes effect: notes the step that would have been taken, and the one that is. */
void library_deviation_note(struct library_world *world);

/* --- events_json.c: what a library offers, and what one schedule of it came to; the caller owns the values --- */

json_t *offer_json(const struct library_offer *offer);
/* The broken promises, with the events that show them. */
json_t *broken_promises_json(const struct broken_promise *broken, int count);
/* The events of a schedule that was played on so many servers, an object each. */
json_t *call_events_json(const struct call_event *events, size_t count, int nodes);
