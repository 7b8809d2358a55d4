/* The world of one schedule of a library: programs that host it, real servers, the messages between them, and one
 * virtual time. It makes no choices itself (harness/library_search does).
 *
 * Everything that a program sends waits until the schedule lets it reach its server, and every answer until the
 * schedule lets it reach the program; a program runs only until it is quiet. Time passes only when nothing is under
 * way, up to the next moment at which somebody goes on. So the workload, the order of steps and the faults between them
 * determine everything that happens, as far as the library's program is deterministic.
 *
 * Programs outlive a schedule: starting one takes longer than most schedules. A *session* is a number of schedules with
 * the same programs, which begins with new ones. */
#ifndef LOCKSTORM_LIBRARY_WORLD_H
#define LOCKSTORM_LIBRARY_WORLD_H

#include "harness/library/hosted_program.h"
#include "harness/library/library_choice.h"
#include "harness/library/library_link.h"
#include "harness/library/workload.h"

enum { LIBRARY_CLIENTS = WORKLOAD_CLIENTS, LIBRARY_LINKS = 32, LIBRARY_NODES = 5, LIBRARY_RESOURCES = 3 };
enum { LIBRARY_STEPS_MOST = 4000, LIBRARY_PATH = 512, LIBRARY_REASON = 256 };
enum { LIBRARY_CHOICES = LIBRARY_CLIENTS * (WORKLOAD_THREADS + 2 * LIBRARY_LINKS) + 1 };

struct library_settings {
    const char *program;   /* the adapter's path */
    const char *directory; /* for sockets and logs */
    int64_t lease_ms;
    int permits, nodes;
    uint64_t seed;                                              /* of the search: programs start with it */
    const char *sockets[LIBRARY_NODES], *clocks[LIBRARY_NODES]; /* the caller's */
};

struct library_thread {
    int next;     /* its next call */
    bool asked;   /* and that is not answered */
    int question; /* its id */
    uint32_t ask; /* index of its event */
    int64_t idle_until_ns;
    int64_t cancel_at_ns; /* 0: never */
    uint64_t steps;
};

struct library_client {
    struct hosted_program program;
    bool runs;               /* it was started, and neither killed nor found to have ended */
    int64_t paused_until_ns; /* 0: it is not */
    struct link_door doors[LIBRARY_NODES];
    struct library_link links[LIBRARY_LINKS];
    int link_count;
    int question; /* id of the last one */
    int control;  /* id of a question that is none of a call; 0: it is answered */
    enum outcome control_outcome;
    json_t *control_answer; /* owned */
    struct library_thread threads[WORKLOAD_THREADS];
};

struct library_world {
    struct library_settings settings;
    struct library_offer offer;
    struct shared_page *page;
    struct node nodes[LIBRARY_NODES];
    struct library_client clients[LIBRARY_CLIENTS];
    struct workload workload;
    int64_t began_ns;          /* the page's clock at the beginning of the schedule */
    struct call_event *events; /* owned */
    size_t event_count, event_room;
    uint64_t steps, clock_steps, commands;
    int current;                 /* the client of the last step */
    bool stopped;                /* no more can happen, although calls are not answered */
    bool excludes_end;           /* a client crashed, or a program has to be started anew for another reason */
    char reason[LIBRARY_REASON]; /* why the world cannot go on; empty: it can */
};

static inline int library_thread_number(int client, int thread) {
    return client * WORKLOAD_THREADS + thread;
}

static inline int library_link_number(int client, int link) {
    return client * LIBRARY_LINKS + link;
}

/* Connects to the servers and asks the library what it offers. False with world->reason. */
bool library_world_open(struct library_world *world, const struct library_settings *settings);
void library_world_close(struct library_world *world);

/* Ends the programs: the next schedule begins a session. */
void library_session_end(struct library_world *world);

/* Begins a schedule: servers are empty, the programs of the workload's clients run and have made no call. False with
 * world->reason. */
bool library_begin(struct library_world *world, const struct workload *workload, uint64_t seed);
/* What can happen now; returns the number of choices, 0 when the workload is over. Steps only, no faults. */
int library_choices(struct library_world *world, struct library_choice *choices);
/* What happens usually: the first of these choices that continues what has begun. */
struct library_choice library_usual(const struct library_world *world, const struct library_choice *choices, int count);
bool library_allows(const struct library_world *world, struct library_choice fault);
/* Number of steps of this kind that the thread, the connection or the clock has taken. */
uint64_t library_steps_of(const struct library_world *world, struct library_choice step);
/* Makes a choice. False with world->reason: the world cannot go on. */
bool library_apply(struct library_world *world, struct library_choice choice);
/* Ends a schedule: what is under way arrives, time passes for as long as a lease and a renewal would last, and what is
 * left at the servers is noted. True: the programs can be used for another schedule. */
bool library_end(struct library_world *world);

#endif
