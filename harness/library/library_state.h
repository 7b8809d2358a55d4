/* The state of a library's world. */
#pragma once

#include "harness/library/library_link.h"
#include "harness/library/library_offer.h"
#include "harness/library_service/library_server.h"
#include "harness/search/choice.h"
#include "harness/search/workload.h"

enum { LIBRARY_LOCKS = 100 /* workload.h */ };
enum { LIBRARY_CLIENTS = WORKLOAD_CLIENTS, LIBRARY_LINKS = LINKS_PER_CLIENT, LIBRARY_NODES = 5, LIBRARY_RESOURCES = 3 };
enum { LIBRARY_STEPS_MOST = 4000, LIBRARY_PATH = 512, LIBRARY_REASON = 256 };
enum { LIBRARY_CHOICES = LIBRARY_CLIENTS * (WORKLOAD_THREADS + 2 * LIBRARY_LINKS) + 1 };

struct library_settings {
    const char *program;   /* the adapter's path */
    const char *directory; /* for sockets and logs */
    int64_t lease_ms;
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
    int next;     /* its next call */
    bool asked;   /* and that is not answered */
    int question; /* its id */
    uint32_t ask; /* index of its event */
    int64_t idle_until_ns;
    int64_t cancel_at_ns; /* 0: never */
    int cancel;           /* id of the question that cancels it; 0: no such question is open */
    uint32_t cancel_ask;  /* index of that event */
};

struct library_client {
    struct hosted_program program;
    bool runs;               /* it was started, and neither killed nor found to have ended */
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
};

struct library_world {
    struct library_settings settings;
    struct library_offer offer;
    struct shared_page *page;
    struct library_server servers[LIBRARY_NODES];
    struct library_client clients[LIBRARY_CLIENTS];
    struct workload workload;
    int64_t began_ns;          /* the page's clock at the beginning of the schedule */
    struct call_event *events; /* owned */
    size_t event_count, event_room;
    uint64_t steps, commands;
    int64_t busy_ns;             /* the page's clock when `turns` was last 0 */
    int turns;                   /* messages that have reached a server at this time */
    bool stopped;                /* no more can happen, although calls are not answered */
    bool excludes_end;           /* a client crashed, or a program has to be started anew for another reason */
    char reason[LIBRARY_REASON]; /* why the world cannot go on; empty: it can */
};

static inline int library_thread_number(int client, int thread) {
    return client * WORKLOAD_THREADS + thread;
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
